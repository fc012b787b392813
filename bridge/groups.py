"""Which of the kernels that Inductor left apart may meet: groups of neighbours without a cycle."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from . import inductor_compat as inductor
from .reasons import Reason


@dataclass
class Refusal:
    """A kernel or a group that Bridge leaves alone, and why."""

    nodes: list[str]
    reason: Reason
    detail: str


@dataclass
class Group:
    """Kernels that share buffers and that no path through others connects.

    positions: indices into the schedule, ascending; names: all operations in them.
    """

    positions: list[int] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    buffers: set[str] = field(default_factory=set)
    device: Any = None


def admissible(kernel: Any) -> Reason | None:
    """None for a kernel that may take part, else the reason why not."""
    if not inductor.is_loop_kernel(kernel):
        return Reason.node_not_loops
    if inductor.mutates_or_aliases(kernel):
        return Reason.mutation
    return None


def form_groups(schedule: list[Any], only: set[int] | None = None) -> tuple[list[Group], list[Refusal]]:
    """Greedy in schedule order: a kernel joins the first group that it shares a buffer with and closes no cycle.

    only: positions that may take part (default: all).
    """
    groups: list[Group] = []
    refusals: list[Refusal] = []
    for position, kernel in enumerate(schedule):
        if only is not None and position not in only:
            continue
        reason = admissible(kernel)
        if reason is not None:
            refusals.append(Refusal([kernel.get_name()], reason, "not a kernel of plain loops that it owns"))
            continue
        _join(groups, refusals, schedule, position)
    return [g for g in groups if _is_candidate(g, schedule)], refusals


def _join(groups: list[Group], refusals: list[Refusal], schedule: list[Any], position: int) -> None:
    kernel = schedule[position]
    touched = inductor.buffers_read(kernel) | inductor.buffers_written(kernel)
    for group in groups:
        if group.device != inductor.device_of(kernel) or not group.buffers & touched:
            continue
        if _closes_cycle(group, schedule, position):
            detail = f"a path from {min(group.names)} leads through another kernel"
            refusals.append(Refusal([kernel.get_name()], Reason.cycle_through_other_node, detail))
            continue
        _add(group, kernel, position, touched)
        return
    group = Group(device=inductor.device_of(kernel))
    _add(group, kernel, position, touched)
    groups.append(group)


def _add(group: Group, kernel: Any, position: int, touched: set[str]) -> None:
    group.positions.append(position)
    group.names |= inductor.operation_names(kernel)
    group.buffers |= touched


def _closes_cycle(group: Group, schedule: list[Any], position: int) -> bool:
    """Whether a kernel between the group and this one depends on the group and feeds this one."""
    needed = inductor.ancestors(schedule[position]) - group.names
    between = (i for i in range(group.positions[0] + 1, position) if i not in group.positions)
    for other in between:
        names = inductor.operation_names(schedule[other])
        if names & needed and inductor.ancestors(schedule[other]) & group.names:
            return True
    return False


def _is_candidate(group: Group, schedule: list[Any]) -> bool:
    """Several kernels, or one whose loops have different extents (C++ codegen fuses outer loops alone)."""
    if len(group.positions) > 1:
        return True
    nodes = inductor.loop_nodes(schedule[group.positions[0]])
    return len({node.group for node in nodes}) > 1 and len({len(inductor.node_sizes(n)[1]) for n in nodes}) > 1
