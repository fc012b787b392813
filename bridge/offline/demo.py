"""For `make demo`: what Bridge does to one function, on a machine without a GPU.

Root mean square norm with a residual, then a gate over the two halves of the row: Inductor launches two GPU
kernels for it, Bridge one.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .. import offline
from ..backend import bridge as bridge_backend
from ..install import enabled
from ..reports import report as last_report
from ..support.version import __version__

if TYPE_CHECKING:
    from .wrapper import TritonKernelSource

#: What `backend=` may be; "bridge" as a string serves too, where the package is installed.
BACKENDS = {"inductor": "inductor", "bridge": bridge_backend}

GPU_SHAPE, CPU_SHAPE = (2048, 8192), (512, 8192)
PAIRS = 200


def f(x: Tensor, residual: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    """Compute what the demonstration compiles: a norm with a residual, then a gate over two halves of the row."""
    x = x + residual
    variance = x.pow(2).mean(-1, keepdim=True)
    x_normed = x * torch.rsqrt(variance + eps) * weight
    gate, up = x_normed.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * up


SOURCE = """\
    def f(x, residual, weight, eps=1e-6):
        x = x + residual
        variance = x.pow(2).mean(-1, keepdim=True)
        x_normed = x * torch.rsqrt(variance + eps) * weight
        gate, up = x_normed.chunk(2, dim=-1)
        return torch.nn.functional.silu(gate) * up
"""


def make_inputs(shape: tuple[int, int], dtype: torch.dtype) -> list[torch.Tensor]:
    """Return the arguments of `f`: two of `shape`, and one weight for each column."""
    generator = torch.Generator().manual_seed(0)
    random = functools.partial(torch.randn, generator=generator)
    return [t.to(dtype) for t in (random(shape), random(shape), random(shape[1]))]


# ---------------------------------------------------------------------------------------------------------
# Printing
# ---------------------------------------------------------------------------------------------------------


def heading(text: str) -> None:
    """Print the heading of a section."""
    print(f"\n== {text} {'=' * max(0, 100 - len(text))}\n", flush=True)


def show(text: str) -> None:
    """Print a text, indented."""
    print("\n".join(f"    {line}" for line in text.strip("\n").splitlines()))


@contextlib.contextmanager
def progress(text: str) -> Iterator[None]:
    """Print a line that grows by a dot a second while the block runs."""
    print(f"{text} ", end="", flush=True)
    done, start = threading.Event(), time.perf_counter()
    ticker = threading.Thread(target=_tick, args=(done,), daemon=True)
    ticker.start()
    try:
        yield
    finally:
        done.set()
        ticker.join()
        print(f" {time.perf_counter() - start:.1f} s", flush=True)


def _tick(done: threading.Event) -> None:
    while not done.wait(1.0):
        print(".", end="", flush=True)


# ---------------------------------------------------------------------------------------------------------
# For a GPU that is not there
# ---------------------------------------------------------------------------------------------------------


def show_gpu() -> None:
    """Print kernel counts, the affine IR, the fused Triton kernel and what its cubin needs."""
    inputs = make_inputs(GPU_SHAPE, torch.bfloat16)
    heading(f"For an H100 (not needed here): bfloat16, {GPU_SHAPE[0]} x {GPU_SHAPE[1]}")
    with progress("Compiling with Inductor"):
        plain = offline.compile_for_gpu(f, inputs)
    with tempfile.TemporaryDirectory() as folder:
        with progress("Compiling with Bridge"):
            fused = offline.compile_for_gpu(f, inputs, context=enabled(dump_dir=folder))
        stages = read_stages(Path(folder))
    print(f"\nKernels with Inductor: {plain.n_kernels}")
    print(f"Kernels with Bridge:   {fused.n_kernels}")
    show_stages(stages)
    for kernel in fused.kernels:
        show_kernel(kernel)
    show_warm(inputs)


def show_warm(inputs: list[torch.Tensor]) -> None:
    """Show what Bridge adds to a compilation once its imports are done."""
    heading("bridge.report(): the same compilation once more, in a process that is warm by now")
    offline.compile_for_gpu(f, inputs, context=enabled())
    show(str(last_report()))


def read_stages(folder: Path) -> dict[str, str]:
    """Return the module before and after the passes, by stage name, from a dump of one compilation."""
    return {stage: next(folder.rglob(f"*-{stage}.mlir")).read_text() for stage in ("affine", "fused")}


def show_stages(stages: dict[str, str]) -> None:
    """Print the affine IR before and after the passes."""
    heading("The affine IR that Inductor's loops become: two nests")
    show(stages["affine"])
    heading("After the passes: one nest, proven parallel; the reduction reads both halves at once")
    show(stages["fused"])


def show_kernel(kernel: TritonKernelSource) -> None:
    """Print the Triton code of a kernel, and the registers of its cubin under each configuration."""
    heading("The Triton kernel that Inductor's code generator makes of it")
    show(kernel.source[kernel.source.index("@triton.jit") :])
    print()
    with progress("Compiling it to a cubin for sm_90"):
        cubins = offline.compile_kernel(kernel)
    for cubin in cubins:
        config = ", ".join(f"{name}={value}" for name, value in cubin.config.items())
        print(f"    {cubin.registers} registers, {cubin.spills} spills, {cubin.shared_bytes} bytes shared ({config})")


# ---------------------------------------------------------------------------------------------------------
# For the CPU that is here
# ---------------------------------------------------------------------------------------------------------


def show_cpu() -> None:
    """Print errors against float64, and the time of both backends."""
    heading(f"On this CPU: float32, {CPU_SHAPE[0]} x {CPU_SHAPE[1]}")
    inputs = make_inputs(CPU_SHAPE, torch.float32)
    functions = {}
    for name, backend in BACKENDS.items():
        with without_caches(name) as options, progress(f"Compiling with backend={name!r}"), torch.no_grad():
            functions[name] = torch.compile(f, backend=backend, options=options)
            functions[name](*inputs)
    exact = f(*(t.double() for t in inputs))
    print("\nLargest error against eager float64:")
    for name, function in functions.items():
        print(f"    {name:9} {largest_error(function, inputs, exact):.2e}")
    with progress(f"\nTiming {PAIRS} pairs of calls"):
        first, second = functions.values()
        times = time_pairs(first, second, inputs)
    show_times(times)


@contextlib.contextmanager
def without_caches(backend: str) -> Iterator[dict]:
    """Give options that have a function compiled anew: one that the caches know has no report."""
    with tempfile.TemporaryDirectory() as folder:
        dump = {"dump_dir": folder} if backend == "bridge" else {}
        yield {"fx_graph_cache": False, **dump}


def largest_error(function: Callable, inputs: list[torch.Tensor], exact: torch.Tensor) -> float:
    """Return the largest absolute difference from the exact result."""
    with torch.no_grad():
        return (function(*inputs).double() - exact).abs().max().item()


def time_pairs(first: Callable, second: Callable, inputs: list[torch.Tensor]) -> list[tuple[float, float]]:
    """Return the seconds of both functions, called in turn so that the machine's moods meet both."""
    return [(seconds(first, inputs), seconds(second, inputs)) for _ in range(PAIRS)]


def seconds(function: Callable, inputs: list[torch.Tensor]) -> float:
    """Return the wall time of one call."""
    with torch.no_grad():
        start = time.perf_counter()
        function(*inputs)
        return time.perf_counter() - start


def show_times(times: list[tuple[float, float]]) -> None:
    """Print the median times of both functions and the ratio."""
    plain, fused = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = statistics.median(a / b for a, b in times)
    print(f"    inductor  {1e3 * plain:.2f} ms (median)")
    print(f"    bridge    {1e3 * fused:.2f} ms (median)")
    print(f"    inductor / bridge: {ratio:.2f} (median of the pairs)")


def main() -> int:
    """Run the whole demonstration; return 1 if the fusion that it shows did not happen on this CPU."""
    print(f"Bridge {__version__}, torch {torch.__version__}. The function:\n\n{SOURCE}", end="")
    if importlib.util.find_spec("triton") is None:
        print("\nThe part about the GPU is left out: Triton is not installed.")
    else:
        show_gpu()
    show_cpu()
    heading("bridge.report(): what the last compilation did")
    report = last_report()
    show(str(report))
    print("\nTry it: torch.compile(your_function, backend='bridge'); options={'dump_dir': ...} keeps every stage.")
    return 0 if report is not None and report.fused else 1


if __name__ == "__main__":
    sys.exit(main())
