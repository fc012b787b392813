"""For `bridge time` on the CPU: what `gpu_measurements` has for a GPU, under the same names."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

import torch

from .gpu_measurements import Launch


@dataclass(frozen=True)
class Replay:
    """Stand for a CUDA graph: a call that may be repeated."""

    replay: Callable[[], object]


def synchronize() -> None:
    """Do nothing: a call has ended when it returns."""


def event_times(call: Callable[[], object], count: int, prepare: Callable[[], object] | None = None) -> list[float]:
    """Return the microseconds of each of `count` calls; what `prepare` does before each is not counted."""
    times = []
    for _ in range(count):
        if prepare is not None:
            prepare()
        start = time.perf_counter()
        call()
        times.append(1e6 * (time.perf_counter() - start))
    return times


def as_it_is(call: Callable[[], object], prepare: Callable[[], object] | None = None) -> tuple[Replay, object]:
    """Return (what repeats the call, nothing to keep)."""
    return Replay(call), None


#: A CPU has no graphs.
captured = as_it_is


def launches(call: Callable[[], object]) -> list[Launch]:
    """Return nothing: a CPU launches no kernels."""
    return []


def peak_bytes(call: Callable[[], object]) -> int:
    """Return the bytes that a call has allocated at most at a time, its result included."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True, acc_events=True) as profile:
        call()
    events = profile.profiler.kineto_results.events()
    changes = sorted((event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]")
    return max(accumulate(amount for _, amount in changes), default=0)
