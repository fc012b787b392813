"""For `bridge bench` and `bridge time`: measure one case with both compilers in one process.

The compilers alternate wherever they can.  A kernel that both make runs with one configuration, that of the first
compiler: otherwise the autotuner may pick two configurations for it, of which one takes 1.3 times as long.
"""

from __future__ import annotations

import contextlib
import gc
import math
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import torch

from .. import inductor
from ..backend import bridge
from ..reports import FAULTS, Report
from ..reports import report as last_report
from . import gpu_measurements
from .cases import FAILURES, Case
from .cpu_measurements import Replay, as_it_is
from .exact import tensors_of
from .gpu_measurements import Launch, Tensors
from .observed import Counts, observed
from .results import Result, Side, half_range

if TYPE_CHECKING:
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

#: Replays of each before the first that counts, rounds that count, and rounds under the profiler.
WARM_UP, ROUNDS, PROFILED = 10, 40, 7

#: Rounds that there are however long they take.
FEWEST_ROUNDS = 4

COMPILERS = ("inductor", "bridge")


def _no_progress(what: str, done: int, of: int) -> None:
    return None


def _ready() -> None:
    return None


@dataclass(frozen=True)
class Plan:
    """Say how a case is measured.

    meter: what measures, of a GPU or the CPU; seconds: how long all rounds may take, of which there are fewer then;
    graphs: whether a GPU replays CUDA graphs, or runs the calls; dynamic, mode: as of torch.compile; counted: also
    count kernels and bytes of the schedules; progress: takes what is done, and how much of it; prepare: called before
    a function is compiled that runs in eager mode; alone: the context of the rounds, in which no other process uses
    the GPU.
    """

    meter: ModuleType = gpu_measurements
    warm_up: int = WARM_UP
    rounds: int = ROUNDS
    seconds: float = math.inf
    graphs: bool = True
    dynamic: bool | None = False
    mode: str | None = None
    counted: bool = False
    progress: Callable[[str, int, int], None] = _no_progress
    prepare: Callable[[], None] = _ready
    alone: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext


#: What `bridge bench` does: all rounds, on a GPU.
_AS_A_BENCHMARK = Plan()


class CompilerFailed(RuntimeError):
    """Signal a case that a compiler cannot compile or run; says which, and whether it is Bridge's doing."""


@dataclass
class _Compiled:
    """Hold a case as one compiler has it; the graph runs all steps of the case."""

    seconds: list[float]
    error: float
    launches: list[Launch]
    shared_kernels: int
    peak_bytes: int
    graph: torch.cuda.CUDAGraph | Replay
    kept: object
    report: Report
    counts: Counts = field(default_factory=Counts)
    times: list[float] = field(default_factory=list)
    triton: list[float] = field(default_factory=list)


def warm_up(device: str = "cuda") -> None:
    """Do what a process does once, so that no compilation is charged for it: imports, workers, the plug-in."""
    from torch._inductor.async_compile import AsyncCompile  # weight: Inductor

    def function(x: torch.Tensor) -> torch.Tensor:
        first, second = (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)).chunk(2, -1)
        return first * second @ second.t()

    x = torch.randn(64, 256, device=device)
    for compiler in COMPILERS:
        torch._dynamo.reset()
        torch.compile(function, backend=_backend(compiler))(x)
    ready = getattr(AsyncCompile, "wait_pool_ready", None)
    if ready is not None and device != "cpu":  # Those processes compile for GPUs alone.
        ready()
    torch._dynamo.reset()


def measure(
    case: Case, number: int = 0, compiles: int = 1, plan: Plan = _AS_A_BENCHMARK, reference: Tensors | None = None
) -> Result:
    """Measure a case with both compilers.

    number: of the case; its parity decides which compiler begins.  compiles: compilations by each; the result has
    their median time.  reference: what errors are relative to, by default the case in eager mode.
    """
    reference = tensors_of(case.tensors(case.run())) if reference is None else reference
    order = COMPILERS[:: 1 if number % 2 else -1]
    seconds: dict[str, list[float]] = {compiler: [] for compiler in order}
    for i in range(compiles - 1):
        for compiler in order[:: 1 if i % 2 else -1]:
            seconds[compiler].append(_attributed(case, compiler, plan)[1])
    tuned: dict[str, CachingAutotuner] = {}
    compiled = {
        compiler: _measure_alone(case, compiler, reference, seconds[compiler], tuned, plan) for compiler in order
    }
    with plan.alone():
        _measure_in_turn(case, compiled, plan)
    return _result(case, *(compiled[compiler] for compiler in COMPILERS))


def _backend(compiler: str) -> str | Callable:
    """Return what `backend=` takes; Bridge itself, as a source tree is not registered by its name."""
    return compiler if compiler == "inductor" else bridge


#: A compiled call, seconds of the first call, its result, its kernels, and what it had in its schedules.
_Compilation: TypeAlias = "tuple[Callable, float, Tensors, dict[str, CachingAutotuner], Counts]"


def _compile(case: Case, compiler: str, plan: Plan = _AS_A_BENCHMARK) -> _Compilation:
    """Compile with empty caches."""
    from torch._inductor.utils import fresh_cache  # weight: Inductor

    torch._dynamo.reset()
    gc.collect()
    case.rewind()
    looking = observed(compiler == "bridge") if plan.counted else contextlib.nullcontext(Counts())
    with fresh_cache(), looking as counts:
        compiled = case.compiled(
            partial(torch.compile, backend=_backend(compiler), dynamic=plan.dynamic, mode=plan.mode)
        )
        plan.meter.synchronize()
        start = time.perf_counter()
        result = compiled(*case.inputs)
        plan.meter.synchronize()
        return compiled, time.perf_counter() - start, result, inductor.tuned_kernels(), counts


def _attributed(case: Case, compiler: str, plan: Plan = _AS_A_BENCHMARK) -> _Compilation:
    """Call `_compile`; CompilerFailed where that fails, which says if Inductor also fails without Bridge."""
    try:
        plan.progress(f"compiling with {compiler}", 0, 0)
        return _compile(case, compiler, plan)
    except FAILURES as failure:
        if compiler != "inductor":
            _attributed(case, "inductor", plan)
        by = "Inductor, without Bridge" if compiler == "inductor" else "with Bridge only"
        raise CompilerFailed(f"{by}: {type(failure).__name__}: {failure}") from failure


def _measure_alone(
    case: Case,
    compiler: str,
    reference: Tensors,
    seconds: list[float],
    tuned: dict[str, CachingAutotuner],
    plan: Plan = _AS_A_BENCHMARK,
) -> _Compiled:
    """Measure all that needs no alternation; tuned: kernels of earlier compilers, to which this one's are added."""
    call, last, result, kernels, counts = _attributed(case, compiler, plan)
    shared = inductor.share_choices(kernels, tuned)
    tuned |= kernels
    report = (last_report() if compiler == "bridge" else None) or Report()
    error = gpu_measurements.relative_error(case.tensors(result), reference)
    del result
    case.rewind()
    peak = plan.meter.peak_bytes(lambda: call(*case.inputs))
    case.rewind()
    launches = plan.meter.launches(lambda: call(*case.inputs))
    captured = plan.meter.captured if plan.graphs else as_it_is
    graph, kept = captured(lambda: case.run_steps(call), case.rewind)
    return _Compiled([*seconds, last], error, launches, shared, peak, graph, kept, report, counts)


def _measure_in_turn(case: Case, compiled: dict[str, _Compiled], plan: Plan = _AS_A_BENCHMARK) -> None:
    """Measure the times: each round has one replay of each compiler, and the order alternates."""
    start = time.perf_counter()

    def late() -> bool:
        return time.perf_counter() - start > plan.seconds

    orders = [list(compiled.values()), list(compiled.values())[::-1]]
    _time_rounds(case, orders, plan, late)
    for one in orders[0]:
        del one.times[: min(plan.warm_up, len(one.times) // 4)]
    _profile_rounds(case, orders, plan, late)


#: The compilers, in the one order and in the other.
_Orders: TypeAlias = "list[list[_Compiled]]"


def _time_rounds(case: Case, orders: _Orders, plan: Plan, late: Callable[[], bool]) -> None:
    rounds = plan.warm_up + plan.rounds
    for number in range(rounds):
        plan.progress("measuring", number, rounds)
        for one in orders[number % 2]:
            (us,) = plan.meter.event_times(one.graph.replay, 1, case.rewind)
            one.times.append(us / case.steps)
        if late() and number + 1 >= FEWEST_ROUNDS:
            return


def _profile_rounds(case: Case, orders: _Orders, plan: Plan, late: Callable[[], bool]) -> None:
    for number in range(PROFILED):
        for one in orders[number % 2]:
            case.rewind()
            launches = plan.meter.launches(one.graph.replay)
            one.triton.append(sum(launch.us for launch in launches if launch.triton) / case.steps)
        if late():
            return


def _result(case: Case, theirs: _Compiled, ours: _Compiled) -> Result:
    ratios = _ratios(ours.times, theirs.times)
    triton = _ratios(ours.triton, theirs.triton)
    reasons = Counter(g.reason.name for g in ours.report.groups if g.reason is not None)
    reasons.update(refusal.reason.name for refusal in ours.report.refusals if refusal.reason in FAULTS)
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
        half_range(one.times), one.counts.kernels, one.counts.moved_bytes,
    )  # fmt: skip
