"""For `bridge bench` and benchmarks/: times in CUDA graphs, launches, memory, and the bandwidth of a copy."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import torch

#: Replays before the first that counts: the clocks need a while to rise.
WARM_UP = 20


#: What a compiled function returns.
Tensors: TypeAlias = torch.Tensor | Sequence[torch.Tensor]


class Launch(NamedTuple):
    """Hold one kernel, or one copy or fill, on the GPU; its time in microseconds."""

    name: str
    us: float

    @property
    def triton(self) -> bool:
        """Return True if Inductor generated it: the names that it gives to its kernels begin so."""
        return self.name.startswith("triton_")


def has_gpu() -> bool:
    """Return True if this machine has a GPU that torch can use."""
    return torch.cuda.is_available()


def synchronize() -> None:
    """Wait for all that was launched."""
    torch.cuda.synchronize()


def copy_bandwidth() -> float:
    """Return the bytes a second of a device-to-device copy, read and written bytes both counted.

    Timed outside a graph: there a copy may go through the copy engine, which is slower than the kernels'
    path to memory.
    """
    source = torch.empty(1 << 32, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    times = event_times(lambda: target.copy_(source), WARM_UP + 20)
    return 2 * source.numel() / (statistics.median(times[WARM_UP:]) * 1e-6)


def event_times(call: Callable[[], object], count: int, prepare: Callable[[], object] | None = None) -> list[float]:
    """Return the microseconds of each of `count` calls; what `prepare` does before each is not counted."""
    times = []
    for _ in range(count):
        if prepare is not None:
            prepare()
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        stop.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(stop) * 1e3)
    return times


def captured(
    call: Callable[[], object], prepare: Callable[[], object] | None = None
) -> tuple[torch.cuda.CUDAGraph, object]:
    """Return (a CUDA graph of one call, what the call returned); the graph owns the memory of both.

    prepare: called before each call, and not captured.  The call runs once before, on another stream, as capturing
    wants it.  What earlier calls have left in reference cycles goes before: nodes of autograd belong to their stream.
    """
    prepare = prepare or _nothing
    prepare()
    gc.collect()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call()
    torch.cuda.synchronize()
    prepare()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call()
    return graph, result


def _nothing() -> None:
    return None


class Replayed(NamedTuple):
    """Hold a CUDA graph of so many calls, with what they returned: it owns the memory."""

    graph: torch.cuda.CUDAGraph
    kept: object
    calls: int


def replayed(calls_of: list[Callable[[], object]], calls: int) -> Replayed:
    """Return a CUDA graph that runs through `calls_of` in turn, `calls` of them."""
    return Replayed(*captured(lambda: [calls_of[i % len(calls_of)]() for i in range(calls)]), calls)


def replay_time(calls_of: list[Callable[[], object]], calls: int, replays: int = 30) -> float:
    """Return the median time (us) of a call in a CUDA graph that runs through `calls_of` in turn, `calls` of them."""
    return replay_times([replayed(calls_of, calls)], replays)[0]


def replay_times(graphs: list[Replayed], replays: int = 30) -> list[float]:
    """Return the median microseconds of one call of each graph; replays alternate, in the one order and in the other.

    A GPU that has become warm is slower: what is timed last would be, too.
    """
    times: list[list[float]] = [[] for _ in graphs]
    order = list(range(len(graphs)))
    for number in range(WARM_UP + replays):
        for i in order if number % 2 else reversed(order):
            times[i] += event_times(graphs[i].graph.replay, 1)
    return [statistics.median(us[WARM_UP:]) / one.calls for us, one in zip(times, graphs, strict=True)]


def launches(call: Callable[[], object]) -> list[Launch]:
    """Return the kernels, copies and fills that a call starts, in the order in which they begin."""
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        call()
        torch.cuda.synchronize()
    on_gpu = (e for e in profile.events() if e.device_type == torch.autograd.DeviceType.CUDA)
    events = [e for e in on_gpu if not getattr(e, "is_user_annotation", False)]
    return [Launch(e.name, e.time_range.elapsed_us()) for e in sorted(events, key=lambda e: e.time_range.start)]


def peak_bytes(call: Callable[[], object]) -> int:
    """Return the bytes a call asks for at most at a time, beyond what was asked for before it; its result included.

    What blocks the allocator has for them, up to 1 MB larger each, depends on which ones earlier calls left behind.
    """
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_stats()["requested_bytes.all.current"]
    call()
    torch.cuda.synchronize()
    return torch.cuda.memory_stats()["requested_bytes.all.peak"] - before


def relative_error(result: Tensors, reference: Tensors) -> float:
    """Return the largest relative error of all outputs: the norm of the difference over the reference's norm.

    Infinities and NaNs that both have are no error; the norm is that of the finite elements.  0 without outputs.
    """
    results, references = (r if isinstance(r, (tuple, list)) else (r,) for r in (result, reference))
    return max((_error(got.double(), ref.double()) for got, ref in zip(results, references, strict=True)), default=0.0)


def _error(got: torch.Tensor, expected: torch.Tensor) -> float:
    same = (got == expected) | (got.isnan() & expected.isnan())
    norm = torch.where(expected.isfinite(), expected, 0.0).norm().clamp_min(1e-300)
    return (torch.where(same, 0.0, got - expected).norm() / norm).item()
