"""Commit a group's bands into the schedule."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from .. import inductor
from ..horizontal.column_costs import cost_of
from ..horizontal.independence import stay_in_order
from ..horizontal.peak_memory import Room
from ..inductor.protocols import Kernel, LoopNode, Schedule
from ..lowering.lift.commit import rewrite, saved_bytes
from ..lowering.lift.long_rows import bytes_while_computing
from ..lowering.triton import codegen
from ..lowering.triton.profitability import MAX_ROW_REGISTERS
from ..reasons import Reason, Unsupported
from ..support.error_boundary import attempt, check_not_faulty
from .group_log import GroupLog
from .grouping import Group
from .mixed_rows import Parts, check_worthwhile
from .results import Fused

if TYPE_CHECKING:
    from ..lowering.lift.band import LiftedBand


@dataclass
class Commit:
    """Give the nodes of each band their new loops and make one kernel of them, or restore them.

    room: in memory, None where whether a band pays is not asked; taken: mix-order kernels in two parts;
    done: the bands that became kernels; refused: the positions of the kernels of each band that did not;
    check_gain: raises Unsupported for a kernel in the place of others that saves too little; None where saving anything
    is enough; resized: buffers have other sizes than Inductor gave them, so that the whole graph's memory is asked;
    in_planes: gives sums over planes Inductor's loops again; waits: returns True for a kernel that gets no other loops
    alone yet, as others may join it; waiting: what these would cost with them, in bytes; crowded: the kernels of each
    band that is refused for memory alone, and how that is said; parted: the positions of bands that had only a part of
    a kernel.
    """

    nodes: dict[str, LoopNode]
    group: Group
    schedule: Schedule
    room: Room | None
    taken: Sequence[Parts] = ()
    done: list[Fused] = field(default_factory=list)
    refused: list[set[int]] = field(default_factory=list)
    check_gain: Callable[[Kernel, list[Kernel]], None] | None = None
    resized: bool = False
    in_planes: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    waits: Callable[[Schedule, Kernel], bool] | None = None
    waiting: dict[Kernel, int] = field(default_factory=dict)
    crowded: list[tuple[list[Kernel], str]] = field(default_factory=list)
    parted: set[int] = field(default_factory=set)

    def commit_all(self, bands: Iterable[LiftedBand], log: GroupLog) -> None:
        """Commit each band by itself; bands that are committed stay."""
        for band in bands:
            with attempt(note=partial(self.refuse, band, log)):
                self.commit(band, log)

    def commit(self, band: LiftedBand, log: GroupLog) -> None:
        """Commit a band; Unsupported, with nothing changed, where that is refused."""
        fused = self._commit(band)
        if fused is not None:
            self.done.append(fused)
            log.take(fused)

    def refuse(self, band: LiftedBand, log: GroupLog, reason: Reason, detail: str) -> None:
        """Note why a band does not become a kernel."""
        self.refused.append(self._positions(band))
        log.refuse_band(reason, detail)

    def _positions(self, band: LiftedBand) -> set[int]:
        return {self.group.positions[k] for k in band.kernels}

    @property
    def kernels(self) -> dict[int, Kernel]:
        """Return the new kernels by the position of the first that each replaces."""
        return {min(fused.positions): fused.kernel for fused in self.done}

    @property
    def removed(self) -> set[int]:
        """Return the positions of all kernels that are replaced."""
        return set().union(*(fused.positions for fused in self.done))

    @property
    def spared(self) -> int:
        """Return how many kernels there are fewer."""
        return sum(len(fused.positions) - 1 for fused in self.done)

    def undo(self) -> None:
        """Give the nodes of the new kernels their old loops."""
        for fused in reversed(self.done):
            fused.undo.close()
        self.in_planes.close()

    def take_back(self) -> None:
        """Undo, and be as before the first try."""
        self.undo()
        self.done.clear()
        self.refused.clear()
        self.waiting.clear()
        self.parted.clear()

    def _commit(self, band: LiftedBand) -> Fused | None:
        positions = self._positions(band)
        replaced = [self.schedule[p] for p in positions]
        if len(positions) == 1 and _has_loops_of(band, self.nodes) and not inductor.has_stages(replaced[0]):
            return None
        check_not_faulty({node.name for node in band.nodes})
        try:
            _check_whole(band, replaced)
        except Unsupported:
            self.parted |= positions
            raise
        _check_order(band, self.schedule, [*(set(fused.positions) for fused in self.done), positions])
        check = partial(self._check, positions, band)
        waits = len(positions) == 1 and self.waits is not None and self.waits(self.schedule, replaced[0])
        kernel, decisions, undo = rewrite(band, self.nodes, [] if self.room is None else replaced, check)
        if waits:
            with undo:
                self.waiting[replaced[0]] = cost_of(kernel)
            return None
        return Fused(kernel, frozenset(positions), tuple(decisions), undo)

    def _check(self, positions: set[int], band: LiftedBand, kernel: Kernel) -> None:
        """Raise Unsupported for a new kernel that cannot stand in the schedule, or needs too much memory."""
        _check_awaited(self.schedule, positions, kernel)
        if self.room is not None:
            replaced = [self.schedule[p] for p in positions]
            if self.check_gain is not None:
                self.check_gain(kernel, replaced)
            if self.taken:
                saved = saved_bytes(kernel.get_operation_names(), replaced) - bytes_while_computing(kernel, band)
                check_worthwhile(self.taken, replaced, saved)
            try:
                self._check_room(self.room, positions, kernel)
            except Unsupported as refusal:
                self.crowded.append(([self.schedule[p] for p in sorted(positions)], refusal.detail))
                raise

    def _check_room(self, room: Room, positions: set[int], kernel: Kernel) -> None:
        """Raise Unsupported, with the schedule as it was, where the graph needs more memory with a new kernel."""
        removed = {position: self.schedule[position] for position in positions}
        fused, replaced = {**self.kernels, min(positions): kernel}, self.removed | positions
        with contextlib.ExitStack() as undo:
            undo.callback(codegen.put_back, removed.values())
            changed = codegen.replace_kernels(kernel.scheduler, self.schedule, fused, replaced)
            if self.resized:
                room.check_all(changed, room.most)
            else:
                room.check(self.schedule, positions, changed)
            undo.pop_all()


def _check_whole(band: LiftedBand, kernels: list[Kernel]) -> None:
    names = {node.name for node in band.nodes}
    if names != {n.get_name() for kernel in kernels for n in inductor.loop_nodes(kernel)}:
        raise Unsupported(Reason.not_liftable, f"{sorted(names)}: only a part of a kernel of Inductor's")


def _check_order(band: LiftedBand, schedule: Schedule, merged: list[set[int]]) -> None:
    if not stay_in_order(schedule, merged):
        detail = "a path leads from one to another through other kernels"
        raise Unsupported(Reason.cycle_through_other_node, f"{sorted(n.name for n in band.nodes)}: {detail}")


def _check_awaited(schedule: Schedule, positions: set[int], kernel: Kernel) -> None:
    """Raise Unsupported where a new kernel waits for one that comes after those in whose place it is.

    Where Inductor gives a node of C++ other loops, it may forget that a buffer is overwritten before the node reads it.
    """
    later = [schedule[p] for p in range(min(positions), len(schedule)) if p not in positions]
    before = set().union(*(inductor.buffers_awaited(schedule[p]) for p in positions))
    for made in map(inductor.buffers_made, later):
        forgotten = (inductor.buffers_awaited(kernel) - before) & made
        if forgotten:
            detail = f"{kernel.get_name()} waits for {sorted(forgotten)}, which are made after it"
            raise Unsupported(Reason.mutation, detail)


def pays(band: LiftedBand, commit: Commit, log: GroupLog) -> bool:
    """Return True if a fused kernel may be faster than Inductor's: not where it reads its rows twice as well."""
    if band.in_registers or not band.registers or band.once:
        return True
    size = f"a row takes {band.registers} registers, of which {MAX_ROW_REGISTERS} can be kept: it would be read again"
    commit.refuse(band, log, Reason.not_profitable, f"{sorted(n.name for n in band.nodes)}: {size}")
    return False


def _has_loops_of(band: LiftedBand, nodes: dict[str, LoopNode]) -> bool:
    """Return True if the passes left every extent of a kernel of Inductor's as it was: there is nothing to gain."""
    return all(inductor.node_sizes(nodes[n.name]) == (n.iter_sizes, n.reduce_sizes) for n in band.nodes)
