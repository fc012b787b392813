"""Time kernels of rows and columns, as `pairs.py` has saved them, in other blocks, warps and stages.

python benchmarks/column_blocks.py PAIRS.json [--model eva02] [--blocks 8 16 32] [--warps 4 8 16] [--stages 1 3]
    [--columns 512]

The rules of `lowering/triton/columns.py` and of `horizontal/column_costs.py` rest on it.  A kernel runs alone, after a
write of 256 MB, so that nothing that it reads is in a cache; its buffers hold random numbers.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from instructions import loaded_module
from pairs import Pair

from bridge.bench.gpu_measurements import has_gpu
from bridge.horizontal.column_sums import MOST_COLUMNS
from bridge.lowering.triton.column_loads import rows_of_step, warps_of_row
from bridge.offline._stubs import StubDriver, active_triton_driver
from bridge.offline.arch import resolve_arch

#: What the source of a kernel uses, without Inductor's decorator, which would choose the block.
HEAD = """import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers
from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math
"""

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16, "i64": torch.int64, "i32": torch.int32}
DTYPES |= {"i8": torch.int8, "i1": torch.bool, "u8": torch.uint8, "fp8e4nv": torch.float8_e4m3fn}


@dataclass(frozen=True)
class Choice:
    """Hold rows of a program, warps, and stages of its loop over the rows."""

    block: int
    warps: int
    stages: int


@dataclass(frozen=True)
class Saved:
    """Hold a kernel of rows and columns; block: that it had; us: that it took in its model; gain: of its pair."""

    model: str
    source: str
    rows: int
    columns: int
    block: int
    us: float
    gain: float

    @property
    def pointers(self) -> list[tuple[str, str]]:
        """Return (name, type) of each argument that is a buffer."""
        signature = re.search(r"'signature': \{(.*?)\}", self.source)
        assert signature, "a kernel has a signature"
        return re.findall(r"'(\w+)': '\*(\w+)'", signature.group(1))


def saved(path: Path, models: list[str]) -> Iterator[Saved]:
    """Yield the distinct kernels of rows and columns in what `pairs.py` saved."""
    known: set[str] = set()
    for pair in (Pair(**one) for one in json.loads(path.read_text())):
        for _, us, source in [*pair.before, *pair.after]:
            block = re.search(r"'RSPLIT_SIZE': (\d+)", source)
            if block is None or source in known or not any(part in pair.model for part in models):
                continue
            known.add(source)
            sizes = [int(number) for number in re.findall(r"^    (?:xnumel|r0_numel) = (\d+)", source, re.MULTILINE)]
            yield Saved(pair.model, source, sizes[0], sizes[1], int(block.group(1)), us, pair.gain)


def loaded(kernel: Saved, folder: Path) -> Any:
    """Return the function of a kernel, of a file in a folder: Triton reads its source there."""
    body = kernel.source[kernel.source.index("@triton.jit") :]
    path = folder / f"kernel_{abs(hash(body))}.py"
    path.write_text(HEAD + body)
    return loaded_module(path).kernel


def buffers(kernel: Saved) -> list[torch.Tensor]:
    """Return a buffer for each pointer: as large as the tile or the partial sums, and as much again."""
    elements = 2 * kernel.rows * kernel.columns + 2**22
    made: list[torch.Tensor] = []
    for _, kind in kernel.pointers:
        dtype = DTYPES[kind]
        if dtype.is_floating_point:
            made.append(torch.rand(elements, device="cuda").to(dtype))
        else:
            made.append(torch.zeros(elements, dtype=dtype, device="cuda"))
    return made


def constants(kernel: Saved, choice: Choice) -> dict[str, int]:
    """Return what a kernel is compiled for."""
    step = rows_of_step(kernel.columns, choice.block)
    blocks = {"XBLOCK": step, "RSPLIT_SIZE": choice.block, "NUM_STAGES": choice.stages}
    return {**blocks, "num_warps": choice.warps, "num_stages": choice.stages}


def launch(function: Any, kernel: Saved, choice: Choice, arguments: list[torch.Tensor]) -> Any:
    """Run a kernel once; return what Triton compiled."""
    grid = (-(-kernel.rows // choice.block),)
    return function[grid](*arguments, kernel.rows, kernel.columns, **constants(kernel, choice))


def compiled_in(job: tuple[Saved, Choice, str]) -> bool:
    """Have Triton keep a kernel's code in its cache; return False where its compiler fails, which ends a process."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    try:
        compile_kernel(job)
    finally:
        os._exit(sys.exc_info()[0] is not None)


def compile_kernel(job: tuple[Saved, Choice, str]) -> None:
    """Compile a kernel without running it, and without the GPU, which each process would have to begin with."""
    from triton import MockTensor

    kernel, choice, folder = job
    arguments = [MockTensor(DTYPES[kind]) for _, kind in kernel.pointers]
    with active_triton_driver(StubDriver(resolve_arch("sm_90"))):
        function = loaded(kernel, Path(folder))
        function.warmup(*arguments, kernel.rows, kernel.columns, grid=(1,), **constants(kernel, choice))


def microseconds(function: Any, kernel: Saved, choice: Choice, arguments: list[torch.Tensor]) -> float:
    """Return the median time of a kernel in microseconds; infinite where it does not fit."""
    from triton.runtime.errors import OutOfResources
    from triton.testing import do_bench

    try:
        return 1e3 * do_bench(
            lambda: launch(function, kernel, choice, arguments), warmup=2, rep=6, return_mode="median"
        )
    except OutOfResources:
        return float("inf")


def choices_of(kernel: Saved, blocks: list[int], warps: list[int] | None, stages: list[int]) -> list[Choice]:
    """Return what a kernel is timed with; warps: None for those of Inductor's runtime, and twice as many."""
    own = warps_of_row(kernel.columns)
    return [Choice(*one) for one in itertools.product(blocks, warps or [own, 2 * own], stages)]


def print_times(kernels: list[Saved], choices: list[list[Choice]], folder: Path, out: Path | None) -> None:
    """Print a line for each kernel, with its fastest choices; all times are saved in `out`."""
    print("| model | rows x columns | block | in the model, us | fastest |\n|---|---|---|---|---|", flush=True)
    times: list[dict[str, Any]] = []
    for kernel, wanted in zip(kernels, choices, strict=True):
        function, arguments = loaded(kernel, folder), buffers(kernel)
        known = {choice: microseconds(function, kernel, choice, arguments) for choice in wanted}
        times.append({"model": kernel.model, "source": kernel.source, "us": kernel.us, "gain": kernel.gain})
        times[-1]["times"] = [[one.block, one.warps, one.stages, us] for one, us in known.items()]
        fastest = sorted(known, key=known.__getitem__)[:5]
        found = ", ".join(f"{one.block} x {one.warps} x {one.stages}: {known[one]:.1f}" for one in fastest)
        size = f"{kernel.rows} x {kernel.columns}"
        print(f"| {kernel.model} | {size} | {kernel.block} | {kernel.us:.1f} | {found} |", flush=True)
        if out:
            out.write_text(json.dumps(times))


def main() -> None:
    """Print a line for each kernel: its own block in each number of warps and stages, and the fastest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path, nargs="+")
    parser.add_argument("--model", nargs="+", default=[""], help="parts of the names of models")
    parser.add_argument("--blocks", type=int, nargs="+", default=[8, 16, 32])
    parser.add_argument("--warps", type=int, nargs="+", help="else those of Inductor's runtime, and twice as many")
    parser.add_argument("--stages", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--columns", type=int, default=MOST_COLUMNS, help="of the widest kernels")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if not has_gpu():
        sys.exit("this benchmark needs a GPU")
    kernels = [kernel for path in options.pairs for kernel in saved(path, options.model)]
    kernels = [kernel for kernel in kernels if kernel.columns <= options.columns]
    choices = [choices_of(kernel, options.blocks, options.warps, options.stages) for kernel in kernels]
    with tempfile.TemporaryDirectory() as folder:
        pairs = zip(kernels, choices, strict=True)
        jobs = [(kernel, choice, folder) for kernel, known in pairs for choice in known]
        with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
            good = list(pool.map(compiled_in, jobs, chunksize=4))
        compiled = [job[:2] for job, done in zip(jobs, good, strict=True) if done]
        choices = [[choice for one, choice in compiled if one is kernel] for kernel in kernels]
        print_times(kernels, choices, Path(folder), options.out)


if __name__ == "__main__":
    main()
