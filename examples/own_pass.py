"""A pass of your own in the pipeline: examples/plugin/ExactReciprocals.cpp, built with Bridge, or your own build of it.

The loops are exported as affine IR, and compiled again after that pass: every division by a power of two has become a
multiplication, which rounds the same.
"""

from pathlib import Path

import torch

import bridge
from bridge.lowering import compile_affine

PLUGIN = Path(bridge.__file__).parent / "_native" / "examples" / "libExactReciprocals.so"
PASSES = "builtin.module(func.func(exact-reciprocals),bridge-fuse{unroll-and-jam=true simt-target=false})"


def centred(x):
    return (x - x.mean(-1, keepdim=True)) / 4


def main():
    x = torch.randn(64, 1024)
    text = bridge.export(centred, x, backend_target="cpu")
    program = compile_affine(text, pipeline=PASSES, plugins=[str(PLUGIN)])
    assert "arith.divf" in text and "arith.divf" not in program.module
    print(program.module)
    (result,) = program(x)
    torch.testing.assert_close(result, centred(x))
    # The same in torch.compile:
    with torch.no_grad():
        compiled = torch.compile(centred, backend="bridge", options={"plugins": [PLUGIN], "pipeline": PASSES})
        torch.testing.assert_close(compiled(x), centred(x))


if __name__ == "__main__":
    main()
