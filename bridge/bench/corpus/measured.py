"""For `bridge bench --corpus` on a GPU: results against eager in float64, times against Inductor and the oracle.

Other processes compile meanwhile; what runs on the GPU runs alone (see `exclusive`).
"""

from __future__ import annotations

import gc
import importlib
import statistics
import time
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING
from unittest import mock

import torch

from ... import inductor, offline
from ...backend import bridge
from ...reports import Report, report
from ...support import fresh_code
from .. import gpu_measurements
from ..results import half_range
from . import numerics
from .compiled import RAISED, describe, same_code
from .exclusive import gpu, locked
from .journal import Record
from .patterns import Corpus

if TYPE_CHECKING:
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

#: Microseconds that a CUDA graph is to take at least, and calls in it at most: a single short call is all noise.
LONG_ENOUGH, MOST_CALLS = 200.0, 50
#: Replays before the first that counts, and those that count.
WARM_UP, ROUNDS = 4, 24

_RANDOM = frozenset({"inductor_random", "inductor_randint", "inductor_seeds"})


def measure(corpus: Corpus, name: str) -> Record:
    """Return a record of one pattern; with "broken", this process cannot use the GPU any more."""
    start = time.perf_counter()
    pattern = _Pattern(corpus, name)
    try:
        with torch.no_grad():
            record = pattern.measured()
    except RAISED as failure:
        record = {"status": pattern.culprit, "detail": f"{type(failure).__name__}: {str(failure)[:1500]}"}
    del pattern
    record |= {"pattern": name, "seconds": round(time.perf_counter() - start, 3)}
    return record | ({"broken": True} if _broken() else {})


def _broken() -> bool:
    """Free what the pattern left, and say whether that fails: an illegal access ends all use of the GPU."""
    try:
        torch._dynamo.reset()
        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    except RuntimeError:
        return True
    return False


class _Pattern:
    """Hold one pattern; culprit: its status if what runs now fails."""

    def __init__(self, corpus: Corpus, name: str):
        self.culprit = "skipped"
        self._corpus, self._name = corpus, name
        self._code: list[list[str]] = []

    def measured(self) -> Record:
        module = self._corpus.module(self._name)
        program = module.Repro()
        with gpu():
            inputs = _inputs(module)
        theirs, tuned = self._compiled(program, inputs, "inductor")
        self.culprit = "crash"
        ours, kernels = self._compiled(program, inputs, bridge)
        inductor.share_choices(kernels, tuned)
        self.culprit = "skipped"
        record = describe(report() or Report(), *map(_launches, self._code))
        record["same_code"] = same_code(*self._code)
        oracle, words = self._oracle(inputs)
        with gpu():
            record |= _judged(program, module, theirs, ours)
            record |= self._timed(inputs, {"inductor_us": theirs, "bridge_us": ours, "oracle_us": oracle})
        return record | ({"oracle_skipped": words} if words and "oracle_us" not in record else {})

    def _compiled(
        self, program: torch.nn.Module, inputs: list[object], backend: str | Callable
    ) -> tuple[Callable, dict[str, CachingAutotuner]]:
        """Return (compiled program, its tuned kernels)."""
        from torch._inductor.codecache import PyCodeCache  # weight: Inductor
        from torch._inductor.graph import GraphLowering  # weight: Inductor

        PyCodeCache.cache_clear()
        codes: list[str] = []
        self._code.append(codes)
        compile_ = torch._dynamo.lookup_backend(backend) if isinstance(backend, str) else backend
        call = torch.compile(fresh_code.fresh_entry(program.forward), backend=locked(compile_), dynamic=False)
        with mock.patch.object(GraphLowering, "save_output_code", codes.append):
            call(*inputs)
        return call, inductor.tuned_kernels()

    def _oracle(self, inputs: list[object]) -> tuple[Callable | None, str]:
        """Return (the hand-written kernel or None, why there is none); its first call compiles it."""
        try:
            module = self._corpus.module(self._name, "oracle")
            # The corpus's own.
            forward, _ = importlib.import_module("oracle_harness").resolve_oracle(module.oracle_forward, inputs)
            forward(inputs)
            torch.cuda.synchronize()
        except Exception as failure:  # noqa: BLE001 - whatever a program of others raises
            return None, f"{type(failure).__name__}: {str(failure)[:200]}"
        return lambda *values: forward(list(values)), ""

    def _timed(self, inputs: list[object], calls: dict[str, Callable | None]) -> Record:
        if same_code(*self._code):
            del calls["inductor_us"]
        times = {side: _Timed(call, inputs) for side, call in calls.items() if call is not None}
        for number in range(WARM_UP + ROUNDS):
            for one in list(times.values())[:: 1 if number % 2 else -1]:
                one.replay(number >= WARM_UP)
        return _ratios({side: one.times for side, one in times.items()})


def _inputs(module: ModuleType) -> list[object]:
    """Return the pattern's inputs, the same ones each time."""
    torch.manual_seed(0)
    return module.make_inputs()


def _launches(codes: list[str]) -> int:
    return sum(len(offline.parse_wrapper(code).launches) for code in codes)


def _judged(program: torch.nn.Module, module: ModuleType, theirs: Callable, ours: Callable) -> Record:
    """Return the errors of both, and a status where Bridge's are too large.

    Where eager cannot be the reference (random numbers are others, memory does not suffice), Inductor is.
    """
    inductors = numerics.results(theirs, _inputs(module))
    bridges = numerics.results(ours, _inputs(module))
    exact = _reference(program, module)
    reference = exact or inductors
    if len(reference) != len(inductors):
        reference = inductors
    found = [numerics.errors(one, reference) for one in (inductors, bridges)]
    bad = numerics.too_far(found[1], found[0], numerics.slacks(inductors, reference is exact))
    record: Record = {"errors": [max(one, default=0.0) for one in found]}
    record["reference"] = "inductor" if reference is inductors else "float64"
    if bad:
        pairs = ", ".join(f"result {k}: {found[1][k]:.2e}, Inductor's {found[0][k]:.2e}" for k in bad)
        record |= {"status": "wrong", "detail": f"errors against {record['reference']}: {pairs}"}
    return record


def _reference(program: torch.nn.Module, module: ModuleType) -> list[torch.Tensor] | None:
    source = type(program).forward.__code__.co_names
    if _RANDOM.intersection(source):
        return None
    try:
        return numerics.in_double(program.forward, _inputs(module))
    except RAISED:
        return None


class _Timed:
    """Hold a call in a CUDA graph, as often as makes it long enough to measure."""

    def __init__(self, call: Callable, inputs: list[object]):
        def some() -> None:
            for _ in range(self.calls):
                call(*inputs)

        self.calls, self.times = 1, list[float]()
        self._graph, _ = gpu_measurements.captured(some)
        once = min(gpu_measurements.event_times(self._graph.replay, 3))
        self.calls = max(1, min(MOST_CALLS, int(LONG_ENOUGH / once)))
        if self.calls > 1:
            self._graph, _ = gpu_measurements.captured(some)

    def replay(self, counts: bool) -> None:
        (us,) = gpu_measurements.event_times(self._graph.replay, 1)
        self.times += [us / self.calls] if counts else []


def _ratios(times: dict[str, list[float]]) -> Record:
    """Return median times, and Bridge's over those of the others, round by round."""
    record: Record = {side: round(statistics.median(values), 3) for side, values in times.items()}
    for side in times.keys() - {"bridge_us"}:
        ratios = [ours / other for ours, other in zip(times["bridge_us"], times[side], strict=True)]
        name = side.removesuffix("_us")
        record |= {f"over_{name}": statistics.median(ratios), f"spread_{name}": half_range(ratios)}
    return record
