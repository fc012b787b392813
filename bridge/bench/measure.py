"""For `bridge bench`: measure one case with both compilers in one process.

The compilers alternate wherever they can.  A kernel that both make runs with one configuration, that of the first
compiler: otherwise the autotuner may pick two configurations for it, of which one takes 1.3 times as long.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from .. import inductor
from ..backend import bridge
from ..reports import Report
from ..reports import report as last_report
from . import gpu_measurements
from .cases import FAILURES, Case
from .gpu_measurements import Launch
from .results import Result, Side, half_range

if TYPE_CHECKING:
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

#: Replays of each before the first that counts, rounds that count, and rounds under the profiler.
WARM_UP, ROUNDS, PROFILED = 10, 40, 7

COMPILERS = ("inductor", "bridge")


class CompilerFailed(RuntimeError):
    """A case that a compiler cannot compile or run; says which, and whether it is Bridge's doing."""


@dataclass
class _Compiled:
    """A case as one compiler has it; the graph runs all steps of the case."""

    seconds: list[float]
    error: float
    launches: list[Launch]
    shared_kernels: int
    peak_bytes: int
    graph: torch.cuda.CUDAGraph
    kept: object
    report: Report
    times: list[float] = field(default_factory=list)
    triton: list[float] = field(default_factory=list)


def warm_up() -> None:
    """Do what a process does once, so that no compilation is charged for it: imports, workers, the plug-in."""
    from torch._inductor.async_compile import AsyncCompile  # weight: Inductor

    def function(x: torch.Tensor) -> torch.Tensor:
        first, second = (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)).chunk(2, -1)
        return first * second @ second.t()

    x = torch.randn(64, 256, device="cuda")
    for compiler in COMPILERS:
        torch._dynamo.reset()
        torch.compile(function, backend=_backend(compiler))(x)
    ready = getattr(AsyncCompile, "wait_pool_ready", None)
    if ready is not None:
        ready()
    torch._dynamo.reset()


def measure(case: Case, number: int = 0, compiles: int = 1) -> Result:
    """Measure a case with both compilers.

    number: of the case; its parity decides which compiler begins.  compiles: compilations by each; the result has
    their median time.
    """
    reference = case.run().clone()
    order = COMPILERS[:: 1 if number % 2 else -1]
    seconds: dict[str, list[float]] = {compiler: [] for compiler in order}
    for i in range(compiles - 1):
        for compiler in order[:: 1 if i % 2 else -1]:
            seconds[compiler].append(_attributed(case, compiler)[1])
    tuned: dict[str, CachingAutotuner] = {}
    compiled = {compiler: _measure_alone(case, compiler, reference, seconds[compiler], tuned) for compiler in order}
    _measure_in_turn(case, compiled)
    return _result(case, *(compiled[compiler] for compiler in COMPILERS))


def _backend(compiler: str) -> str | Callable:
    """Return what `backend=` takes; Bridge itself, as a source tree is not registered by its name."""
    return compiler if compiler == "inductor" else bridge


def _compile(case: Case, compiler: str) -> tuple[Callable, float, torch.Tensor, dict[str, CachingAutotuner]]:
    """Return (compiled call, seconds of the first call, its result, its kernels), with empty caches."""
    from torch._inductor.utils import fresh_cache  # weight: Inductor

    torch._dynamo.reset()
    gc.collect()
    case.rewind()
    with fresh_cache():
        compiled = torch.compile(case.call, backend=_backend(compiler), dynamic=False)
        torch.cuda.synchronize()
        start = time.perf_counter()
        result = compiled(*case.inputs)
        torch.cuda.synchronize()
        return compiled, time.perf_counter() - start, result, inductor.tuned_kernels()


def _attributed(case: Case, compiler: str) -> tuple[Callable, float, torch.Tensor, dict[str, CachingAutotuner]]:
    """Call `_compile`; CompilerFailed where that fails, which says if Inductor also fails without Bridge."""
    try:
        return _compile(case, compiler)
    except FAILURES as failure:
        if compiler != "inductor":
            _attributed(case, "inductor")
        by = "Inductor, without Bridge" if compiler == "inductor" else "with Bridge only"
        raise CompilerFailed(f"{by}: {type(failure).__name__}: {failure}") from failure


def _measure_alone(
    case: Case, compiler: str, reference: torch.Tensor, seconds: list[float], tuned: dict[str, CachingAutotuner]
) -> _Compiled:
    """Measure all that needs no alternation; tuned: kernels of earlier compilers, to which this one's are added."""
    call, last, result, kernels = _attributed(case, compiler)
    shared = inductor.share_choices(kernels, tuned)
    tuned |= kernels
    report = (last_report() if compiler == "bridge" else None) or Report()
    error = gpu_measurements.relative_error(result, reference)
    del result
    case.rewind()
    peak = gpu_measurements.peak_bytes(lambda: call(*case.inputs))
    case.rewind()
    launches = gpu_measurements.launches(lambda: call(*case.inputs))
    graph, kept = gpu_measurements.captured(lambda: case.run_steps(call), case.rewind)
    return _Compiled([*seconds, last], error, launches, shared, peak, graph, kept, report)


def _measure_in_turn(case: Case, compiled: dict[str, _Compiled]) -> None:
    """Measure the times: each round has one replay of each compiler, and the order alternates."""
    orders = [list(compiled.values()), list(compiled.values())[::-1]]
    for number in range(WARM_UP + ROUNDS):
        for one in orders[number % 2]:
            (us,) = gpu_measurements.event_times(one.graph.replay, 1, case.rewind)
            one.times += [us / case.steps] if number >= WARM_UP else []
    for number in range(PROFILED):
        for one in orders[number % 2]:
            case.rewind()
            launches = gpu_measurements.launches(one.graph.replay)
            one.triton.append(sum(launch.us for launch in launches if launch.triton) / case.steps)


def _result(case: Case, theirs: _Compiled, ours: _Compiled) -> Result:
    ratios = _ratios(ours.times, theirs.times)
    triton = _ratios(ours.triton, theirs.triton)
    reasons = Counter(g.reason.name for g in ours.report.groups if g.reason is not None)
    return Result(
        case.model, case.mode, case.batch, _side(theirs), _side(ours),
        statistics.median(ratios), half_range(ratios), statistics.median(triton), half_range(triton),
        ours.report.total_seconds, dict(reasons), max(theirs.shared_kernels, ours.shared_kernels),
    )  # fmt: skip


def _ratios(ours: list[float], theirs: list[float]) -> list[float]:
    """Return the ratio of each round; 1 for a case without generated kernels."""
    return [one / other if other else 1.0 for one, other in zip(ours, theirs, strict=True)]


def _side(one: _Compiled) -> Side:
    return Side(
        len(one.launches), sum(launch.triton for launch in one.launches), statistics.median(one.times),
        statistics.median(one.triton), statistics.median(one.seconds), one.peak_bytes, one.error,
    )  # fmt: skip
