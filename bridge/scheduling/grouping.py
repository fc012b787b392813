"""Which of the kernels that Inductor left apart may meet: groups of neighbours without a cycle."""

from __future__ import annotations

import functools
import graphlib
import operator
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any

from .. import inductor
from ..diagnostics import recording
from ..inductor.inspection import node_location
from ..lowering.triton.profitability import traffic, traffic_of_one
from ..reasons import Reason, Refusal
from ..reports import GroupReport
from ..support.error_boundary import attempt, try_step

#: Kernels from a group's first to its last, for each node that it may have: what is farther apart stays apart.
SPAN = 4


@dataclass
class Group:
    """Kernels that share buffers and that no path through others connects.

    positions: indices into the schedule, ascending; names: all operations in them; nodes: how many loop nodes;
    culprit: position of the kernel that was being translated, where that ended the translation.
    """

    positions: list[int] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    buffers: set[str] = field(default_factory=set)
    device: Any = None
    nodes: int = 0
    culprit: int | None = None


def admissible(kernel: Any) -> Reason | None:
    """None for a kernel that may take part, else the reason why not."""
    if not inductor.is_loop_kernel(kernel):
        return Reason.node_not_loops
    if inductor.mutates_or_aliases(kernel):
        return Reason.mutation
    return None


def form_groups(schedule: list[Any], max_nodes: int, only: set[int] | None = None) -> tuple[list[Group], list[Refusal]]:
    """Greedy in schedule order: a kernel joins the groups that its values come from, else one that shares a buffer.

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
            reason = admissible(kernel)
            if reason is not None:
                refusals.append(Refusal([kernel.get_name()], reason, "not a kernel of plain loops that it owns"))
                continue
            closed += [g for g in groups if position - g.positions[0] > max_nodes * SPAN]
            groups = [g for g in groups if position - g.positions[0] <= max_nodes * SPAN]
            own = _single(schedule, position)
            homes, cyclic = _homes(groups, own, schedule, max_nodes, reach)
            refusals += [_cycle(group, kernel) for group in cyclic]
            rest = [g for g in groups if not any(g is home for home in homes)]
            groups = sorted([*rest, _united([*homes, own])], key=lambda group: group.positions[0])
    return [g for g in closed + groups if try_step(partial(_is_candidate, g, schedule), False, *g.names)], refusals


def _homes(
    groups: list[Group], own: Group, schedule: list[Any], max_nodes: int, reach: dict[int, int]
) -> tuple[list[Group], list[Group]]:
    """(the groups that a kernel joins, those that it would close a cycle with).

    All that its values come from; one with which it only reads the same buffers does where there are none.
    """
    kernel = schedule[own.positions[0]]
    touching = [group for group in groups if group.device == own.device and group.buffers & own.buffers]
    flows = [_flows(kernel, [schedule[p] for p in group.positions]) for group in touching]
    homes: list[Group] = []
    cyclic: list[Group] = []
    for group, is_source in sorted(zip(touching, flows, strict=True), key=lambda pair: not pair[1]):
        if not is_source and (homes or not _has_loops(kernel)):
            break
        members = [*homes, group, own]
        if sum(member.nodes for member in members) <= max_nodes:
            (cyclic if _has_cycle(_united(members).positions, reach) else homes).append(group)
    return homes, cyclic


def _cycle(group: Group, kernel: Any) -> Refusal:
    detail = f"a path from {min(group.names)} leads through another kernel"
    return Refusal([kernel.get_name()], Reason.cycle_through_other_node, detail)


def _has_loops(kernel: Any) -> bool:
    return any(iteration or reduction for iteration, reduction in map(inductor.node_sizes, inductor.loop_nodes(kernel)))


def _flows(kernel: Any, members: list[Any]) -> bool:
    """Whether a value goes from one to the other: single elements that both read are no reason to share a band."""
    written = set().union(*map(inductor.buffers_written, members))
    read = set().union(*map(inductor.buffers_read, members))
    return bool(inductor.buffers_read(kernel) & written or inductor.buffers_written(kernel) & read)


def _touched(kernel: Any) -> set[str]:
    """Buffers that the kernel reads or writes, and those that hold what it writes."""
    written = inductor.buffers_written(kernel)
    storages = {storage for name in written if (storage := inductor.storage_of(name)) is not None}
    return inductor.buffers_read(kernel) | written | storages


def _single(schedule: list[Any], position: int) -> Group:
    kernel = schedule[position]
    nodes = len(inductor.loop_nodes(kernel))
    return Group([position], inductor.operation_names(kernel), _touched(kernel), inductor.device_of(kernel), nodes)


def _united(groups: list[Group]) -> Group:
    """Of one device."""
    return Group(
        sorted(p for group in groups for p in group.positions),
        set().union(*(group.names for group in groups)),
        set().union(*(group.buffers for group in groups)),
        groups[0].device,
        sum(group.nodes for group in groups),
    )


def _has_cycle(positions: list[int], reach: dict[int, int]) -> bool:
    """Whether a kernel between the first and the last waits for one of them and is waited for by another."""
    members = sum(1 << p for p in positions)
    awaited = functools.reduce(operator.or_, (reach[p] for p in positions))
    between = (p for p in range(positions[0] + 1, positions[-1]) if not members >> p & 1)
    return any(awaited >> other & 1 and reach[other] & members for other in between)


def span(positions: Iterable[int]) -> range:
    """From the first to the last: what leads from one of these kernels to another stands there, too."""
    ordered = sorted(positions)
    return range(ordered[0], ordered[-1] + 1) if ordered else range(0)


def reachable(schedule: list[Any], positions: Iterable[int]) -> dict[int, int]:
    """For each kernel in the span of some the set, as bits, of positions in it that it waits for, directly or not.

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


def stay_in_order(schedule: list[Any], merged: list[set[int]]) -> bool:
    """Whether the kernels have an order still where each set of positions is one kernel."""
    home = {p: min(positions) for positions in merged for p in positions}
    around = span(home)
    makers = {name: home.get(p, p) for p in around for name in inductor.buffers_made(schedule[p])}
    waits: dict[int, set[int]] = {}
    for position in around:
        own = home.get(position, position)
        needed = {makers[name] for name in inductor.buffers_awaited(schedule[position]) & makers.keys()}
        waits.setdefault(own, set()).update(needed - {own})
    try:
        graphlib.TopologicalSorter(waits).prepare()
    except graphlib.CycleError:
        return False
    return True


def _is_candidate(group: Group, schedule: list[Any]) -> bool:
    """Several kernels, or one whose loops may still agree better.

    C++ codegen fuses outer loops alone.  Triton's gives one kernel loops in different orders, and loops whose body
    asks which part of the row it is in.
    """
    if len(group.positions) > 1:
        return True
    nodes = inductor.loop_nodes(schedule[group.positions[0]])
    sizes = [inductor.node_sizes(node) for node in nodes]
    if len({len(reduced) for _, reduced in sizes}) == 1:
        return False
    extents = {prod(iterated) * prod(reduced) for iterated, reduced in sizes}
    return len(extents) > 1 or max(len(r) for _, r in sizes) > 1 or any(map(inductor.has_masked_parts, nodes))


def group_report(name: str, group: Group, schedule: list[Any]) -> GroupReport:
    """A group's entry in the report, before anything is tried."""
    nodes = [n for p in group.positions for n in inductor.loop_nodes(schedule[p])]
    locations = [where for where in map(node_location, nodes) if where is not None]
    kernels = [schedule[p] for p in group.positions]
    before = traffic([inductor.bytes_touched(kernel) for kernel in kernels])
    one = traffic_of_one([inductor.bytes_touched(kernel, group.names) for kernel in kernels])
    entry = GroupReport(name, [n.get_name() for n in nodes], len(kernels), len(kernels), locations=locations)
    entry.bytes_before, entry.bytes_if_one = before, one
    recording.begin_group(entry, kernels)
    return entry
