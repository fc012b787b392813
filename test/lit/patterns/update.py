"""Writes the lit tests of the benchmarks' patterns anew: the affine IR before the pipeline, and checks of it after.

    python test/lit/patterns/update.py             # after a change of the translation or of a pass
    python test/lit/patterns/update.py swiglu      # those in whose name a part occurs

Read the difference before it is committed: the checks are what bridge-opt prints, not what it should print.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PIPELINE = "builtin.module(bridge-fuse)"

sys.path.insert(0, str(ROOT / "benchmarks"))

#: Other sizes of a function that is tested anyway.
TWICE = ("_4096", "_5120", "mla_indexer_192", "mla_indexer_256")

#: What a nest is made of; arithmetic between these is a matter of the tests of single passes.
STRUCTURE = re.compile(r"affine\.(for|if|store)|\bbridge\.(band|nodes)|^\s*return")


def translated(pattern) -> list[str]:
    """Return the modules of the pattern's groups, as translated for a GPU at the pattern's small size."""
    from bridge import offline
    from bridge.backend import bridge

    with tempfile.TemporaryDirectory() as folder:

        def backend(gm, inputs):
            return bridge(gm, inputs, options={"dump_dir": folder})

        inputs = pattern.make(None, torch.bfloat16, "cpu", small=True)
        offline.compile_for_gpu(pattern.function, inputs, compile_fx=backend, dynamic=False)
        return [path.read_text() for path in sorted(Path(folder).glob("*/*-affine.mlir"))]


def transformed(module: str) -> str:
    opt = ROOT / "build" / "_native" / "bin" / "bridge-opt"
    command = [str(opt), f"--pass-pipeline={PIPELINE}"]
    return subprocess.run(command, input=module, capture_output=True, text=True, check=True).stdout


def check(line: str) -> str:
    """Return a line with any names for its values and maps."""
    pattern = re.sub(r"%[\w#:]+", "%{{.*}}", line.strip())
    directive = "CHECK-NEXT" if pattern == "return" else "CHECK"
    return f"// {directive}: " + re.sub(r"#(map|set)\d*", "#{{.*}}", pattern)


def lit_test(modules: list[str]) -> str:
    lines = [f"// RUN: bridge-opt %s --split-input-file --pass-pipeline='{PIPELINE}' 2>/dev/null | FileCheck %s"]
    lines += ["// Written by update.py from benchmarks/patterns.py."]
    for module in modules:
        lines += ["", "// -----", ""] if module is not modules[0] else [""]
        lines += ["// CHECK-LABEL: func.func @"]
        lines += [check(line) for line in transformed(module).splitlines() if STRUCTURE.search(line)]
        lines += [module.rstrip()]
    return "\n".join(lines) + "\n"


def main() -> None:
    from patterns import TESTED, selected

    for pattern in selected(sys.argv[1:] or [""], TESTED):
        if not pattern.name.endswith(TWICE):
            (HERE / f"{pattern.name}.mlir").write_text(lit_test(translated(pattern)))
            print(pattern.name, flush=True)


if __name__ == "__main__":
    main()
