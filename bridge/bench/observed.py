"""For `bridge time`: kernels and bytes of what a compiler generates code for, read from its schedules."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .. import inductor
from ..inductor import inspection as generated
from ..lowering.triton.profitability import traffic
from ..support import recorder

if TYPE_CHECKING:
    from ..inductor.protocols import Schedule
    from ..reports import Report


@dataclass
class Counts:
    """Hold, of each graph, (kernels of generated code, bytes they move for typical sizes), without library calls."""

    graphs: dict[object, tuple[int, int]] = field(default_factory=dict)

    @property
    def kernels(self) -> int:
        """Return the number of all graphs together."""
        return sum(kernels for kernels, _ in self.graphs.values())

    @property
    def moved_bytes(self) -> int:
        """Return the bytes of all graphs together."""
        return sum(amount for _, amount in self.graphs.values())

    def note(self, graph: object, schedule: Schedule) -> None:
        """Count a graph's schedule; a later one of the same graph takes its place."""
        own = [kernel for kernel in schedule if generated.is_generated(kernel)]
        self.graphs[graph] = len(own), traffic([inductor.bytes_touched(kernel) for kernel in own])


class _Look:
    """Look at a schedule, and change nothing."""

    def __init__(self, counts: Counts):
        self.counts = counts

    def active(self) -> bool:
        return True

    def key(self) -> None:
        return None

    def __call__(self, schedule: Schedule) -> Schedule:
        self.counts.note(len(self.counts.graphs), schedule)
        return schedule


class _Listener:
    """Record, and also count, what Bridge has made of a graph."""

    def __init__(self, counts: Counts, other: recorder.Recorder):
        self.counts, self.other = counts, other

    def __getattr__(self, name: str) -> Any:
        return getattr(self.other, name)

    def finish_graph(self, schedule: Schedule, report: Report, earlier: int) -> None:
        """Count a graph, again if it is scheduled again, and tell the other recorder."""
        self.counts.note((id(report), report.graphs), schedule)
        self.other.finish_graph(schedule, report, earlier)


@contextlib.contextmanager
def observed(with_bridge: bool) -> Iterator[Counts]:
    """Count what is compiled in the block, by Inductor alone or with Bridge."""
    counts = Counts()
    if not with_bridge:
        with inductor.hooked(inductor.scheduler_pass(_Look(counts))):
            yield counts
        return
    other = recorder.recorder()
    recorder.use(_Listener(counts, other))
    try:
        yield counts
    finally:
        recorder.use(other)
