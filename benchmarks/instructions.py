"""Print how many instructions an operation takes for one element: what bridge/inductor/instructions.py has.

python benchmarks/instructions.py [NAME ...]     # by Triton's compiler; without a GPU

The second number is that of the shortest way through the code: most of a sine's is for arguments beyond 1e5. The third
is the share of it that is left for each of eight elements of a thread which have the same argument: `UNIFORM_SHARES`.
"""

from __future__ import annotations

import heapq
import importlib.util
import itertools
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

#: Each as Inductor's Triton code has it.
OPERATIONS = {
    "add": "x + x * x", "where": "tl.where(x > 0.5, x, 1.0)", "maximum": "triton_helpers.maximum(x, 0.5)",
    "exp": "tl_math.exp(x)", "sigmoid": "tl.sigmoid(x)", "rsqrt": "libdevice.rsqrt(x)", "sqrt": "tl.sqrt_rn(x)",
    "truediv": "x / (x + 2.0)", "log": "tl_math.log(x)",
    "floordiv": "(x.to(tl.int32) // (i + 3)).to(tl.float32)", "mod": "(x.to(tl.int32) % (i + 3)).to(tl.float32)",
    "rand": "tl.rand(5, i.to(tl.uint32))", "randn": "tl.randn(5, i.to(tl.uint32))", "sin": "tl_math.sin(x)",
    "cos": "tl_math.cos(x)", "pow": "libdevice.pow(x, 1.7)", "atan2": "libdevice.atan2(x, x + 1.0)",
    "fmod": "libdevice.fmod(x, x + 2.0)",
    **{
        name: f"libdevice.{name}(x)"
        for name in (
            "tanh", "erf", "erfc", "expm1", "log1p", "log2", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh",
            "acosh", "atanh", "lgamma",
        )
    },
}  # fmt: skip

_HEAD = """
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers
from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math

@triton.jit
def kernel(source, target, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(source + {})
    tl.store(target + i, {})
"""

BLOCK, WARPS = 1024, 4

#: Where all elements of a thread have the same argument.
SAME = "i // 64"


class Counts(NamedTuple):
    """Hold instructions: all of the code, and those on the shortest way through it."""

    whole: float
    shortest: float


def per_element(expression: str, folder: Path, place: str = "i") -> Counts:
    """Return the instructions of a kernel that stores an expression of each `x`, by elements of a thread.

    place: of `x`, by that of the element, `i`.
    """
    path = folder / "kernel.py"
    path.write_text(_HEAD.format(place, expression))
    signature = {"source": "*fp32", "target": "*fp32", "BLOCK": "constexpr"}
    aligned = {(argument,): [["tt.divisibility", 16]] for argument in range(2)}
    source = ASTSource(loaded_module(path).kernel, signature, constexprs={(2,): BLOCK}, attrs=aligned)
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": WARPS})
    code, elements = _instructions(compiled.asm["cubin"], folder), BLOCK // (32 * WARPS)
    return Counts(len(code) / elements, _shortest(code) / elements)


def loaded_module(path: Path) -> ModuleType:
    """Return the module of a file: Triton reads the source of its kernels there."""
    spec = importlib.util.spec_from_file_location("kernel", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _instructions(cubin: bytes, folder: Path) -> dict[int, str]:
    """Return the instructions of a kernel by address."""
    (path := folder / "kernel.cubin").write_bytes(cubin)
    tools = str(Path(triton.__file__).parent / "backends" / "nvidia" / "bin")
    settings = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    dump = [f"{tools}/cuobjdump", "-sass", str(path)]
    text = subprocess.run(dump, capture_output=True, text=True, check=True, env=settings).stdout
    found = re.findall(r"/\*([0-9a-f]{4,})\*/\s+(.*?);", text)
    return {int(address, 16): line for address, line in found if not line.startswith("NOP")}


def _shortest(code: dict[int, str]) -> int:
    """Return how many instructions are executed at least."""
    following = dict(itertools.pairwise(code))
    reached, waiting = {0: 1}, [(1, 0)]
    while waiting:
        executed, address = heapq.heappop(waiting)
        if code[address].startswith("EXIT"):
            return executed
        for after in _next(code[address], following[address]):
            if executed + 1 < reached.get(after, len(code) + 1):
                reached[after] = executed + 1
                heapq.heappush(waiting, (executed + 1, after))
    raise AssertionError("the code has no end")


def _next(line: str, following: int) -> list[int]:
    """Return the addresses at which a kernel may go on after an instruction."""
    jump = re.search(r"\bBRA\b.*?0x([0-9a-f]+)", line)
    if jump is None:
        return [following]
    always = line.startswith("BRA ") and not re.match(r"BRA\s+!?U?P", line)
    return [int(jump.group(1), 16)] if always else [int(jump.group(1), 16), following]


def main() -> None:
    """Print a line for each operation."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain, same = (per_element("x", folder, place) for place in ("i", SAME))
        print(f"load and store: {plain.whole:.1f}")
        for operation in sys.argv[1:] or OPERATIONS:
            whole, shortest = per_element(OPERATIONS[operation], folder)
            of_same = per_element(OPERATIONS[operation], folder, SAME).shortest - same.shortest
            executed = shortest - plain.shortest
            print(f"{operation}: {whole - plain.whole:.1f}, {executed:.1f}, {of_same / executed:.2f}", flush=True)


if __name__ == "__main__":
    main()
