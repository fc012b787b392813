"""Sums over planes, for which a group is tried once more: what goes over planes may then be one kernel with them.

Inductor has split each of these sums at other places than the ends of planes (see inductor/plane_sums.py). Those that
stay apart are Inductor's again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from functools import partial
from typing import TypeAlias

from .. import inductor
from ..horizontal.column_costs import CLEAR_GAIN
from ..horizontal.column_wholes import rebuilt
from ..horizontal.independence import reachable
from ..inductor.columns import is_column_part
from ..inductor.plane_sums import PlaneSum, in_lines, plane_sum, split_at_planes
from ..inductor.protocols import Kernel
from ..inductor.sizes import size_hint
from ..lowering.lift.commit import saved_bytes
from ..lowering.triton.profitability import traffic
from ..reasons import Reason, Unsupported
from .commit import Commit
from .group_log import GroupLog

#: A kernel's operations, and the bytes that it moves, by buffer.
_Given: TypeAlias = tuple[AbstractSet[str], dict[str, int]]

#: Parts of all sums for each multiprocessor, at least: Inductor does not split what has as many without it.
PARTS_OF_PROCESSOR = 2


def try_in_planes(commit: Commit, log: GroupLog, try_passes: Callable[[], None]) -> None:
    """Have the new kernels of a group with its sums over planes in `commit`.

    try_passes: tries the group as it is in `commit`. Nothing is changed where no kernel comes of it that has such a
    sum. Where no piece of a plane has enough in common with other kernels, its lines may: they may be the rows of a
    softmax.
    """
    sums = _sums_of(commit)
    _try_sums(commit, log, try_passes, sums)
    lines = [in_lines(one) for one in sums]
    if commit.done or lines == sums or all(one.pieces == 1 for one in lines) or not _reduces_else(commit, sums):
        return
    earlier = log.set_aside()
    _try_sums(commit, log, try_passes, lines)
    if not commit.done:
        log.say_again(earlier)


def _reduces_else(commit: Commit, sums: list[PlaneSum]) -> bool:
    """Return True if a group reduces anything but these sums."""
    stages = {node.get_name() for one in sums for node in (one.part, one.total)}
    kernels = [commit.schedule[position] for position in commit.group.positions]
    nodes = [node for kernel in kernels for node in inductor.loop_nodes(kernel)]
    return any(inductor.node_sizes(node)[1] and node.get_name() not in stages for node in nodes)


def _try_sums(commit: Commit, log: GroupLog, try_passes: Callable[[], None], sums: list[PlaneSum]) -> None:
    """Try some sums of a group together; then those of which kernels came, or those that wait for others."""
    while sums:
        with ExitStack() as undo:
            _split(commit, sums, undo)
            positions = _without_totals(commit, sums)
            if len(positions) > 1:
                _try_positions(commit, positions, try_passes)
            used = _of_kernels(sums, [fused.kernel for fused in commit.done])
            if used and len(used) == len(sums):
                commit.in_planes = undo.pop_all()
                return
            if commit.done:
                commit.undo()
                commit.done.clear()
                log.take_back(Reason.no_common_band, "other kernels than those of its sums over planes")
            later = [one for one in sums if one not in _of_kernels(sums, [commit.schedule[p] for p in positions])]
        sums = used or (later if len(later) < len(sums) else [])


def _of_kernels(sums: list[PlaneSum], kernels: list[Kernel]) -> list[PlaneSum]:
    """Return the sums that kernels have the first stages of."""
    names = set().union(*map(inductor.operation_names, kernels))
    return [one for one in sums if one.part.get_name() in names]


def _without_totals(commit: Commit, sums: list[PlaneSum]) -> list[int]:
    """Return the positions of a group's kernels but second stages, and what waits for these.

    Second stages want other loops outermost, and are never in the band. Without them, the passes would not know that
    what waits for them cannot be in it either: the gradient of a norm's input goes over the same planes.
    """
    schedule, names = commit.schedule, {one.total.get_name() for one in sums}
    waits, totals, rest = reachable(schedule, commit.group.positions), 0, []
    for position in commit.group.positions:
        if inductor.operation_names(schedule[position]) & names:
            totals |= 1 << position
        elif not waits[position] & totals:
            rest.append(position)
    return rest


def _try_positions(commit: Commit, only: list[int], try_passes: Callable[[], None]) -> None:
    """Try only some kernels of a group, with nothing refused before."""
    group = commit.group
    positions, group.positions = group.positions, only
    group.rows_of_segments = True
    commit.refused.clear()
    try:
        try_passes()
    finally:
        group.positions = positions


def _sums_of(commit: Commit) -> list[PlaneSum]:
    """Return the sums over planes of a group; none of a kernel that adds up anything else in two stages."""
    if not inductor.generates_triton(commit.group.device):
        return []
    rows = PARTS_OF_PROCESSOR * inductor.multiprocessors(commit.group.device)
    found = []
    for kernel in (commit.schedule[position] for position in commit.group.positions):
        own = [plane_sum(node, rows) for node in inductor.loop_nodes(kernel) if is_column_part(node)]
        known = [one for one in own if one is not None]
        found += known if len(known) == len(own) else []
    return found


def _split(commit: Commit, sums: list[PlaneSum], undo: ExitStack) -> None:
    """Have the sums' parts be planes in a group's kernels, and what is asked of new ones, until `undo` is closed."""
    for name in ("schedule", "check_gain", "resized"):
        undo.callback(setattr, commit, name, getattr(commit, name))
    if commit.room is not None:
        undo.callback(setattr, commit.room, "levels", dict(commit.room.levels))
    nodes = {node.get_name() for one in sums for node in (one.part, one.total)}
    kernels = [commit.schedule[position] for position in commit.group.positions]
    given = [(inductor.operation_names(kernel), inductor.bytes_touched(kernel)) for kernel in kernels]
    for one in sums:
        split_at_planes(one, undo)
    changed = [rebuilt(k, undo) if inductor.operation_names(k) & nodes else k for k in commit.schedule]
    commit.schedule, commit.check_gain, commit.resized = changed, partial(_check_gain, sums, given), True


def _check_gain(sums: list[PlaneSum], given: Sequence[_Given], kernel: Kernel, replaced: list[Kernel]) -> None:
    """Raise Unsupported where a kernel saves little: rows that begin at any element are loaded in smaller accesses.

    given: the group's kernels as Inductor has them.  A sum in several stages reads less there than one over planes.
    """
    names = inductor.operation_names(kernel)
    operations = set().union(*map(inductor.operation_names, replaced))
    before = traffic([touched for own, touched in given if own & operations])
    own = [one for one in sums if one.part.get_name() in names]
    parts = sum(4 * size_hint(inductor.buffer_numel(one.buffer)) for one in own)
    more = max(traffic([inductor.bytes_touched(k) for k in replaced]) - before, 0)
    saved = saved_bytes(set(names), replaced) - more - 2 * parts
    if saved <= CLEAR_GAIN * before:
        detail = f"sums over planes save {saved / 2**20:.1f} of {before / 2**20:.1f} MB"
        raise Unsupported(Reason.not_profitable, f"{sorted(names)}: {detail}")
