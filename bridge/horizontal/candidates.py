"""Candidates for horizontal fusion: sets of kernels that may run in any order, and have a reason to share a launch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from .. import inductor
from ..inductor.protocols import Kernel, Schedule
from ..reasons import Reason
from ..support.error_boundary import try_step
from .cost import FRESH_BYTES, measure, share_input
from .independence import find_obstacle, reachable

if TYPE_CHECKING:
    import sympy

#: Kernels that may stand between two of a set: what the later waits for is computed, and kept, that much earlier.
MAX_DISTANCE = 16

Relation = Callable[[Kernel, Kernel], bool]


def find_launch_obstacle(kernel: Kernel) -> Reason | None:
    """Return why a kernel, or a launch of several, may not share a launch with others; None where it may."""
    reasons = map(_find_part_obstacle, inductor.launch_parts(kernel))
    return next((reason for reason in reasons if reason is not None), None)


def _find_part_obstacle(kernel: Kernel) -> Reason | None:
    reason = find_obstacle(kernel)
    return None if reason is Reason.mutation and inductor.only_overwrites(kernel) else reason


def sets_of_group(schedule: Schedule, names: set[str]) -> list[list[int]]:
    """Return sets of positions of independent kernels of one group that read a common buffer or have as many rows.

    names: operations of the group. Independent is what no chain of buffers connects.
    """

    def eligible(kernel: Kernel) -> bool:
        return inductor.operation_names(kernel) <= names and find_obstacle(kernel) is None

    return _sets(schedule, eligible, share_input_or_rows, len(schedule))


def sets_of_equal_reductions(schedule: Schedule) -> list[list[int]]:
    """Return sets of positions of independent kernels with equal reductions over as many rows."""
    return _sets(schedule, lambda kernel: find_obstacle(kernel) is None, have_equal_reductions, MAX_DISTANCE)


def sets_of_small_kernels(schedule: Schedule) -> list[list[int]]:
    """Return sets of positions of small kernels that read a common buffer, or reduce nothing and are as large.

    They may overwrite buffers, which keeps them out of groups, and be launches of several.
    """
    return _sets(schedule, _is_small, share_input_or_elements, MAX_DISTANCE)


def sets_with_common_reader(schedule: Schedule) -> list[list[int]]:
    """Return sets of positions of small kernels whose results one kernel reads: an attention its query and its mask.

    None waits for long, so there is room in memory for a kernel that had none in a launch with earlier ones.
    """
    return _sets(schedule, _is_small, have_common_reader, MAX_DISTANCE)


def sets_of_equal_loops(schedule: Schedule, eligible: Callable[[Kernel], bool]) -> list[list[int]]:
    """Return sets of positions of independent kernels that go over as many elements, and reduce as many to each."""
    return _sets(schedule, eligible, have_equal_loops, MAX_DISTANCE)


def _is_small(kernel: Kernel) -> bool:
    return find_launch_obstacle(kernel) is None and measure(kernel).total <= FRESH_BYTES


def _sets(schedule: Schedule, eligible: Callable[[Kernel], bool], related: Relation, distance: int) -> list[list[int]]:
    candidates = [p for p, kernel in enumerate(schedule) if _holds(eligible, kernel)]
    if len(candidates) < 2:
        return []
    reach = reachable(schedule, candidates)
    closed: list[list[int]] = []
    open_sets: list[list[int]] = []
    for position in candidates:
        closed += [s for s in open_sets if position - s[0] > distance]
        open_sets = [s for s in open_sets if position - s[0] <= distance]
        joined = next((s for s in open_sets if _belongs(schedule, s, position, reach, related)), None)
        if joined is None:
            open_sets.append([position])
        else:
            joined.append(position)
    return [s for s in closed + open_sets if len(s) > 1]


def _belongs(schedule: Schedule, members: list[int], position: int, reach: dict[int, int], related: Relation) -> bool:
    """Return True if a kernel is independent of each of the earlier `members` and related to one."""
    if any(reach[position] >> m & 1 for m in members):
        return False
    return any(_holds(related, schedule[position], schedule[m]) for m in members)


def _holds(condition: Callable[..., bool], kernel: Kernel, *others: Kernel) -> bool:
    """Return what a condition says of a kernel; False where a bug ends it."""
    return try_step(partial(condition, kernel, *others), False, kernel.get_name())


def share_input_or_rows(one: Kernel, other: Kernel) -> bool:
    """Return True if kernels of one device read a common buffer or have as many rows."""
    if inductor.device_of(one) != inductor.device_of(other):
        return False
    return share_input(one, other) or _rows(one) == _rows(other)


def have_equal_reductions(one: Kernel, other: Kernel) -> bool:
    """Return True if kernels of one device have as many rows and reduce over the same extents."""
    if inductor.device_of(one) != inductor.device_of(other) or _rows(one) != _rows(other):
        return False
    return _reduced(one) is not None and _reduced(one) == _reduced(other)


def have_equal_loops(one: Kernel, other: Kernel) -> bool:
    """Return True if kernels of one device have as many elements, each reduced from as many."""
    return inductor.device_of(one) == inductor.device_of(other) and one.group[1] == other.group[1]


def share_input_or_elements(one: Kernel, other: Kernel) -> bool:
    """Return True if parts of two launches read a common buffer, or reduce nothing and compute as many elements."""
    pairs = itertools.product(inductor.launch_parts(one), inductor.launch_parts(other))
    return any(share_input(a, b) or _have_equal_elements(a, b) for a, b in pairs)


def have_common_reader(one: Kernel, other: Kernel) -> bool:
    """Return True if a kernel reads the results of both."""
    return bool(inductor.readers(one) & inductor.readers(other))


def _have_equal_elements(one: Kernel, other: Kernel) -> bool:
    if _reduced(one) is not None or _reduced(other) is not None:
        return False
    return _elements(one) == _elements(other)


def _elements(kernel: Kernel) -> sympy.Expr:
    return prod(inductor.node_sizes(inductor.loop_nodes(kernel)[0])[0])


def _rows(kernel: Kernel) -> sympy.Expr | None:
    """Return the extent of a kernel's outermost loop; None for a kernel with no loop outside its reductions."""
    sizes, _ = inductor.node_sizes(inductor.loop_nodes(kernel)[0])
    return sizes[0] if sizes else None


def _reduced(kernel: Kernel) -> Sequence[sympy.Expr] | None:
    """Return the extents that a kernel reduces over; None for a kernel that reduces nothing."""
    return next((sizes for _, sizes in map(inductor.node_sizes, inductor.loop_nodes(kernel)) if sizes), None)
