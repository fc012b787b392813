"""Groups of kernels that Inductor left apart and that may meet: neighbours, without a cycle through others."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from .. import inductor
from ..horizontal.independence import find_obstacle, reachable
from ..inductor import inspection
from ..inductor.protocols import Kernel, Schedule
from ..reasons import Reason, Refusal
from ..support.error_boundary import attempt, try_step

if TYPE_CHECKING:
    import torch

#: Kernels from a group's first to its last, for each node that it may have: what is farther apart stays apart.
SPAN = 4


@dataclass
class Group:
    """Hold kernels that share buffers and that no path through others connects.

    positions: indices into the schedule, ascending; names: all operations in them; nodes: how many loop nodes;
    culprit: position of the kernel that was being translated, where that ended the translation; tries: how often a
    group that it was a part of had a band refused; rows_of_segments: what segments of a row, or its lanes, have reduced
    may be reduced over the row; in_pieces: one iteration has what one of another node reads.
    """

    positions: list[int] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    buffers: set[str] = field(default_factory=set)
    device: torch.device | None = None
    nodes: int = 0
    culprit: int | None = None
    tries: int = 0
    rows_of_segments: bool = True
    in_pieces: bool = False


def form_groups(schedule: Schedule, max_nodes: int, only: set[int] | None = None) -> tuple[list[Group], list[Refusal]]:
    """Form groups, greedily in schedule order.

    A kernel joins the groups that its values come from, else one that shares a buffer.

    Those that it joins become one, where that closes no cycle. max_nodes: a group that would have more is closed, and
    another begins; only: positions that may take part (default: all).
    """
    closed: list[Group] = []
    groups: list[Group] = []
    refusals: list[Refusal] = []
    positions = range(len(schedule)) if only is None else sorted(only)
    reach = reachable(schedule, positions)
    for position in positions:
        kernel = schedule[position]
        with attempt(kernel.get_name()):
            reason = _find_obstacle(kernel)
            if reason is not None:
                refusals += _refusals(kernel, reason)
                continue
            closed += [g for g in groups if position - g.positions[0] > max_nodes * SPAN]
            groups = [g for g in groups if position - g.positions[0] <= max_nodes * SPAN]
            own = _single(schedule, position)
            joined, cyclic = _joinable(groups, own, schedule, max_nodes, reach)
            refusals += [_cycle(group, own, schedule, reach) for group in cyclic]
            rest = [g for g in groups if not any(g is one for one in joined)]
            groups = sorted([*rest, _united([*joined, own])], key=lambda group: group.positions[0])
    return [g for g in closed + groups if try_step(partial(_is_candidate, g, schedule), False, *g.names)], refusals


def _refusals(kernel: Kernel, reason: Reason) -> list[Refusal]:
    """Return what is said of a kernel in no group: nothing of what is no kernel."""
    if inspection.is_no_kernel(kernel):
        return []
    detail = _ITS_ORDER if reason is Reason.reduction_not_splittable else "not a kernel of plain loops that it owns"
    return [Refusal([kernel.get_name()], reason, detail)]


#: Why a sum stays as it is.
_ITS_ORDER = "a backward compares what depends on these sums, and computes them again: both have Inductor's order"


def _find_obstacle(kernel: Kernel) -> Reason | None:
    """Return why a kernel is in no group.

    One that overwrites a buffer in loops is ordered by its dependences.  One of Inductor's stages is of loops, too.
    """
    reason = find_obstacle(kernel)
    if reason is Reason.node_not_loops and inductor.has_stages(kernel):
        reason = Reason.mutation if inductor.mutates_or_aliases(kernel) else None
    return None if reason is Reason.mutation and inductor.overwrites_in_place(kernel) else reason


def _joinable(
    groups: list[Group], own: Group, schedule: Schedule, max_nodes: int, reach: dict[int, int]
) -> tuple[list[Group], list[Group]]:
    """Return (the groups that a kernel joins, those that it would close a cycle with).

    All that its values come from; one with which it only reads the same buffers does where there are none.
    """
    kernel = schedule[own.positions[0]]
    touching = [group for group in groups if group.device == own.device and group.buffers & own.buffers]
    flows = [_flows(kernel, [schedule[p] for p in group.positions]) for group in touching]
    joined: list[Group] = []
    cyclic: list[Group] = []
    for group, is_source in sorted(zip(touching, flows, strict=True), key=lambda pair: not pair[1]):
        if not is_source and (joined or not _has_loops(kernel)):
            break
        members = [*joined, group, own]
        if sum(member.nodes for member in members) <= max_nodes:
            (cyclic if _has_cycle(_united(members).positions, reach) else joined).append(group)
    return joined, cyclic


def _cycle(group: Group, own: Group, schedule: Schedule, reach: dict[int, int]) -> Refusal:
    """Return why a kernel does not join a group that it would close a cycle with."""
    between = (schedule[position] for position in _between(_united([group, own]).positions, reach))
    others = [kernel for kernel in between if not inspection.is_no_kernel(kernel)]
    way = "another kernel" if others else "a buffer whose parts are written first, as those of a cat"
    detail = f"a path from {min(group.names)} leads through {way}"
    return Refusal([schedule[own.positions[0]].get_name()], Reason.cycle_through_other_node, detail)


def _has_loops(kernel: Kernel) -> bool:
    return any(iteration or reduction for iteration, reduction in map(inductor.node_sizes, inductor.loop_nodes(kernel)))


def _flows(kernel: Kernel, members: list[Kernel]) -> bool:
    """Return True if a value goes from one to the other: that both read single elements is no reason to share."""
    written = set().union(*map(inductor.buffers_written, members))
    read = set().union(*map(inductor.buffers_read, members))
    return bool(inductor.buffers_read(kernel) & written or inductor.buffers_written(kernel) & read)


def _touched(kernel: Kernel) -> set[str]:
    """Return buffers that the kernel reads or writes, but no seeds, and those that hold what it writes."""
    written = inductor.buffers_written(kernel)
    storages = {storage for name in written if (storage := inductor.storage_of(name)) is not None}
    return inductor.inputs_read(kernel) | written | storages


def _single(schedule: Schedule, position: int) -> Group:
    kernel = schedule[position]
    nodes = len(inductor.loop_nodes(kernel))
    return Group([position], inductor.operation_names(kernel), _touched(kernel), inductor.device_of(kernel), nodes)


def _united(groups: list[Group]) -> Group:
    """Return one group of several, which have one device."""
    return Group(
        sorted(p for group in groups for p in group.positions),
        set().union(*(group.names for group in groups)),
        set().union(*(group.buffers for group in groups)),
        groups[0].device,
        sum(group.nodes for group in groups),
    )


def _has_cycle(positions: list[int], reach: dict[int, int]) -> bool:
    """Return True if a kernel between the first and the last waits for one of them and is waited for by another."""
    return any(True for _ in _between(positions, reach))


def _between(positions: list[int], reach: dict[int, int]) -> Iterator[int]:
    """Give the positions of others that wait for one of some kernels and are waited for by another of them."""
    members = sum(1 << p for p in positions)
    awaited = functools.reduce(operator.or_, (reach[p] for p in positions))
    outside = (p for p in range(positions[0] + 1, positions[-1]) if not members >> p & 1)
    return (other for other in outside if awaited >> other & 1 and reach[other] & members)


def _is_candidate(group: Group, schedule: Schedule) -> bool:
    """Return True for several kernels, or one whose loops may still agree better.

    C++ codegen fuses outer loops alone.  Triton's gives one kernel loops in different orders, loops whose body asks
    which part of the row it is in, and stages.
    """
    if len(group.positions) > 1 or inductor.has_stages(schedule[group.positions[0]]):
        return True
    nodes = inductor.loop_nodes(schedule[group.positions[0]])
    sizes = [inductor.node_sizes(node) for node in nodes]
    if len({len(reduced) for _, reduced in sizes}) == 1:
        return False
    extents = {prod(iterated) * prod(reduced) for iterated, reduced in sizes}
    return len(extents) > 1 or max(len(r) for _, r in sizes) > 1 or any(map(inductor.has_masked_parts, nodes))
