"""Keep what an explanation needs to know of a compilation, while somebody is going to ask: see `recorded`.

Without that nothing here runs.  Inductor's caches are not used meanwhile: what they answer leaves nothing to record.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from ..reports import GroupReport, Report

if TYPE_CHECKING:  # Inductor and sympy are heavy, and `import bridge` is to be quick.
    import sympy

    from ..inductor.protocols import Kernel as ScheduledKernel
    from ..inductor.protocols import LoopNode, Schedule


@dataclass(frozen=True)
class Statement:
    """Hold a scheduler node as Inductor had it.

    kernel: which of the group's kernels it was in; lines: (file, line) of the user's code that it came from;
    iterations / reduced: extents of its loops, outermost first, as text; reads / writes: names of buffers.
    """

    name: str
    kernel: int
    lines: list[tuple[str, int]]
    iterations: list[str]
    reduced: list[str]
    reads: list[str]
    writes: list[str]


@dataclass(frozen=True)
class Buffer:
    """shape: extents as text; bytes: at typical sizes; temporary: nothing outside of the group uses it."""

    dtype: str
    shape: list[str]
    bytes: int
    temporary: bool


@dataclass(frozen=True)
class Kernel:
    """Hold a kernel of generated code: its name, its scheduler nodes, its source; graph: the number of the graph."""

    name: str
    nodes: list[str]
    source: str
    graph: int = 0


@dataclass
class GroupRecord:
    """Hold a group before and after Bridge.

    stages: name -> text, as the dump has them; guards: size relations under which the passes would make one
    kernel of it; sizes: typical values of symbolic sizes; graph: as of `Kernel`.
    """

    statements: list[Statement]
    buffers: dict[str, Buffer]
    stages: dict[str, str] = field(default_factory=dict)
    guards: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    graph: int = 0

    def add_stage(self, name: str, text: str) -> None:
        """Keep a text under its name, with a number where that is taken: clean-up runs several times."""
        number = sum(known.split(" ")[0] == name for known in self.stages) + 1
        self.stages[name if number == 1 else f"{name} ({number})"] = text

    def of_part(self, nodes: set[str], with_stages: bool) -> GroupRecord:
        """Return the record of some of the group's kernels, by their nodes, as Inductor had them."""
        own = [statement for statement in self.statements if statement.name in nodes]
        numbers = {kernel: k for k, kernel in enumerate(dict.fromkeys(statement.kernel for statement in own))}
        elsewhere = {b for other in self.statements if other.name not in nodes for b in (*other.reads, *other.writes)}
        used = {buffer for statement in own for buffer in (*statement.reads, *statement.writes)}
        return GroupRecord(
            [replace(statement, kernel=numbers[statement.kernel]) for statement in own],
            {
                name: replace(buffer, temporary=buffer.temporary and name not in elsewhere)
                for name, buffer in self.buffers.items()
                if name in used
            },
            dict(self.stages) if with_stages else {},
        )


@dataclass
class Recording:
    """Hold everything compiled since it began.

    reports: one a compilation; kernels: all that code was generated for, of Bridge's groups or not; schedules: how
    many graphs were scheduled, whose numbers tell `op0` of one from `op0` of another.
    """

    reports: list[Report] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    schedules: int = 0

    def add(self, other: Recording) -> None:
        """Add what another recorded; its graphs get the numbers that follow."""
        for group in other.groups:
            if isinstance(group.record, GroupRecord):
                group.record.graph += self.schedules
        self.reports += other.reports
        self.kernels += [replace(kernel, graph=kernel.graph + self.schedules) for kernel in other.kernels]
        self.schedules += other.schedules

    @property
    def groups(self) -> list[GroupReport]:
        return [group for report in self.reports for group in report.groups]

    @property
    def graphs(self) -> int:
        return sum(report.graphs for report in self.reports)

    @property
    def kernels_before(self) -> int:
        """Return the kernels of loops that Inductor alone would have launched."""
        return sum(report.kernels_before for report in self.reports)

    @property
    def kernels_after(self) -> int:
        return sum(report.kernels_after for report in self.reports)


_current: ContextVar[Recording | None] = ContextVar("bridge_recording", default=None)


def current() -> Recording | None:
    return _current.get()


@contextlib.contextmanager
def recorded() -> Iterator[Recording]:
    """Record what this context compiles through Bridge inside the block."""
    recording = Recording()
    token = _current.set(recording)
    try:
        yield recording
    finally:
        _current.reset(token)


def begin_group(kernels: Sequence[ScheduledKernel]) -> GroupRecord | None:
    """Record a group as it arrives; None outside of `recorded`."""
    if current() is None:
        return None
    statements = [_statement(node, k) for k, kernel in enumerate(kernels) for node in _nodes(kernel)]
    return GroupRecord(statements, _buffers(statements, kernels))


def finish_group(record: GroupRecord | None, fused: bool, sizes: Sequence[sympy.Symbol], pipeline: str) -> None:
    """Record sizes of a group, and which values of theirs would make it fuse if it did not."""
    from .. import inductor
    from .guards import find_guards

    if record is None:
        return
    record.sizes = {str(size): inductor.size_hint(size) for size in sizes}
    if not fused:
        record.guards = find_guards(record.stages["affine.mlir"], record.sizes, pipeline)


def finish_graph(schedule: Schedule, report: Report, earlier: int) -> None:
    """Record what became of the groups from number `earlier` on, and the code that is yet to be generated."""
    recording = current()
    if recording is None or not schedule:
        return
    if all(report is not known for known in recording.reports):
        recording.reports.append(report)
    for entry in report.groups[earlier:]:
        if isinstance(entry.record, GroupRecord):
            entry.record.graph = recording.schedules
    watch(schedule)


def watch(schedule: Schedule) -> None:
    """Record the kernels that code is yet to be generated for."""
    from ..inductor import inspection as generated

    recording = current()
    if recording is not None and schedule:
        graph, recording.schedules = recording.schedules, recording.schedules + 1
        generated.watch_kernels(schedule, partial(_keep_kernel, recording, graph))


def _keep_kernel(recording: Recording, graph: int, name: str, nodes: list[str], source: str) -> None:
    recording.kernels.append(Kernel(name, nodes, source, graph))


def _nodes(kernel: ScheduledKernel) -> list[LoopNode]:
    from .. import inductor

    return inductor.loop_nodes(kernel)


def _statement(node: LoopNode, kernel: int) -> Statement:
    from .. import inductor
    from ..inductor import inspection as generated

    iterations, reduced = inductor.node_sizes(node)
    reads, writes = inductor.buffers_read(node), inductor.buffers_written(node)
    lines = generated.node_locations(node)
    outer, inner = ([str(extent) for extent in part] for part in (iterations, reduced))
    return Statement(node.get_name(), kernel, lines, outer, inner, sorted(reads), sorted(writes))


def _buffers(statements: list[Statement], kernels: Sequence[ScheduledKernel]) -> dict[str, Buffer]:
    from .. import inductor

    names = {name for statement in statements for name in (*statement.reads, *statement.writes)}
    operations = set().union(*map(inductor.operation_names, kernels))
    lasting = {name for kernel in kernels for name in inductor.bytes_touched(kernel, operations)}
    return {name: _buffer(name, name not in lasting) for name in sorted(names)}


def _buffer(name: str, temporary: bool) -> Buffer:
    from .. import inductor
    from ..inductor import inspection as generated

    dtype = str(inductor.buffer_dtype(name)).removeprefix("torch.")
    return Buffer(dtype, generated.buffer_shape(name), inductor.buffer_bytes(name), temporary)
