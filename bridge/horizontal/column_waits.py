"""Kernels of which a part waits for the sums of columns that the rest of it could help to find.

A copy of a tile with a scale for each row, and one with a scale for each column, are one kernel of Inductor's where
both go over the rows. It waits for the columns' scales, although the rows' copy does not: without the other copy, that
one can be in the kernel of rows that finds the columns' largest elements.
"""

from __future__ import annotations

from dataclasses import dataclass

from .. import inductor
from ..inductor.columns import is_column_part
from ..inductor.protocols import Kernel, LoopNode, Schedule
from .independence import find_obstacle, positions_of, replaced_by_parts


@dataclass(frozen=True)
class Division:
    """Hold the nodes of a kernel (`whole`), in order: those that wait for no sums of some columns, and the rest."""

    whole: Kernel
    before: list[LoopNode]
    after: list[LoopNode]


@dataclass(frozen=True)
class Divided:
    """Hold a kernel (`whole`) that is two."""

    whole: Kernel
    before: Kernel
    after: Kernel

    def in_schedule(self, schedule: Schedule) -> Schedule:
        """Return the schedule with both in the place of the one."""
        return replaced_by_parts(schedule, self.whole, self.before, self.after)


def find_divisions(schedule: Schedule, seed: Kernel, window: int) -> list[Division]:
    """Return the kernels of which only a part waits for the sums of columns of one (`seed`).

    window: how many after it are looked at.
    """
    parts = [node for node in inductor.loop_nodes(seed) if is_column_part(node)]
    waiting = set().union(*map(inductor.buffers_made, parts))
    (position,) = positions_of(schedule, [seed])
    found = []
    for kernel in schedule[position + 1 : position + 1 + window]:
        if find_obstacle(kernel) is None:
            before, after = _divided_nodes(kernel, waiting)
            found += [Division(kernel, before, after)] if before and after else []
        elif _waits(kernel, waiting):
            waiting |= inductor.buffers_made(kernel)
    return found


def _waits(kernel: Kernel, waiting: set[str]) -> bool:
    return bool((inductor.buffers_read(kernel) | inductor.buffers_awaited(kernel)) & waiting)


def _divided_nodes(kernel: Kernel, waiting: set[str]) -> tuple[list[LoopNode], list[LoopNode]]:
    """Return (the nodes of a kernel that do not wait, those that do, whose buffers are `waiting` from now on)."""
    before: list[LoopNode] = []
    after: list[LoopNode] = []
    for node in inductor.loop_nodes(kernel):
        waits = _waits(node, waiting)
        (after if waits else before).append(node)
        if waits:
            waiting |= inductor.buffers_made(node)
    return before, after
