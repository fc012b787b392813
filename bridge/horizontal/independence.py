"""Dependences between whole kernels of a schedule: which wait for which, and which orders are left."""

from __future__ import annotations

import graphlib
from collections.abc import Iterable, Sequence

from .. import inductor
from ..inductor import inspection
from ..inductor.protocols import Kernel, Schedule
from ..reasons import Reason


def find_obstacle(kernel: Kernel) -> Reason | None:
    """Return why a kernel may not take part in a fusion; None where it may."""
    if not inductor.is_loop_kernel(kernel):
        return Reason.extern_kernel if inspection.is_library_call(kernel) else Reason.node_not_loops
    if inductor.has_left_sums(kernel):
        return Reason.reduction_not_splittable
    if inductor.mutates_or_aliases(kernel):
        return Reason.atomics if inductor.adds_atomically(kernel) else Reason.mutation
    return None


def positions_of(schedule: Sequence[Kernel], kernels: Iterable[Kernel]) -> list[int]:
    """Return where kernels stand in a schedule, ascending."""
    wanted = set(map(id, kernels))
    return [position for position, kernel in enumerate(schedule) if id(kernel) in wanted]


def replaced_by_parts(schedule: Schedule, whole: Kernel, *parts: Kernel) -> Schedule:
    """Return the schedule with the parts of a kernel in its place, in their order."""
    (position,) = positions_of(schedule, [whole])
    return [*schedule[:position], *parts, *schedule[position + 1 :]]


def span(positions: Iterable[int]) -> range:
    """Return all positions from the first to the last: what leads from one kernel to another stands there, too."""
    ordered = sorted(positions)
    return range(ordered[0], ordered[-1] + 1) if ordered else range(0)


def reachable(schedule: Sequence[Kernel], positions: Iterable[int]) -> dict[int, int]:
    """Return for each kernel in the span the positions in it that it waits for, directly or not, as bits.

    Inductor's `ancestors` are those of single operations: they do not know that a fused kernel waits for all of
    its operations' inputs.
    """
    makers: dict[str, int] = {}
    reach: dict[int, int] = {}
    for position in span(positions):
        waits = 0
        for name in inductor.buffers_awaited(schedule[position]) & makers.keys():
            waits |= reach[makers[name]] | 1 << makers[name]
        reach[position] = waits
        makers.update(dict.fromkeys(inductor.buffers_made(schedule[position]), position))
    return reach


def stay_in_order(schedule: Sequence[Kernel], merged: list[set[int]]) -> bool:
    """Return True if the kernels still have an order where each set of positions is one kernel."""
    first = {p: min(positions) for positions in merged for p in positions}
    around = span(first)
    makers = {name: first.get(p, p) for p in around for name in inductor.buffers_made(schedule[p])}
    waits: dict[int, set[int]] = {}
    for position in around:
        own = first.get(position, position)
        needed = {makers[name] for name in inductor.buffers_awaited(schedule[position]) & makers.keys()}
        waits.setdefault(own, set()).update(needed - {own})
    try:
        graphlib.TopologicalSorter(waits).prepare()
    except graphlib.CycleError:
        return False
    return True
