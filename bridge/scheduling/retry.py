"""Groups that are tried again without one of their kernels: the rest may still become one."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from .. import inductor
from ..inductor.columns import has_column_parts
from ..inductor.protocols import Kernel
from ..lowering.triton.profitability import LAUNCH_BYTES
from ..options import DEFAULT_PIPELINE, Options
from ..reasons import Reason
from .commit import Commit
from .group_log import GroupLog
from .grouping import Group, form_groups

#: Kernels that are left out of a group, one after the other, at most: each costs a translation and the passes.
MOST_TRIES = 3


def may_do_without_rows_of_segments(commit: Commit, options: Options, log: GroupLog) -> bool:
    """Return True if a group's passes reduced over a row what segments or lanes of it had reduced, and need not."""
    chosen = commit.group.rows_of_segments and options.pipeline == DEFAULT_PIPELINE
    faulty = log.refusal is not None and log.refusal[0] is Reason.internal_error
    return chosen and not faulty and log.transformed.rows_of_segments


def groups_to_try_again(commit: Commit, options: Options, log: GroupLog) -> list[Group]:
    """Return groups of a group's kernels without one of them; the log is of what none of these groups has.

    That one is the kernel at which its translation ended. Else, where nothing was fused and a band was refused, the
    first or the last of the band, of which the other kernels have less; where enough is left to be saved. Sums of
    columns are left out before: where a tile has as many columns as rows, they are in a band that goes down its columns
    and along its rows, and they may join the rows later (see columns.py).  Where another band was fused, and a
    refused one may have reduced what segments of its rows had, its kernels are tried without that.  Before all that
    come groups without what has no rows: see `_groups_of_rows`.
    """
    if commit.group.culprit is not None:
        rest = _groups_without(commit.group.culprit, commit, options)
    elif commit.done and may_do_without_rows_of_segments(commit, options, log):
        rest = [group for band in commit.refused for group in _groups_without_rows_of_segments(band, commit, options)]
        if not rest:
            return []
    else:
        rest = _groups_of_rows(commit, options) or _groups_without_an_end(commit, options)
        if not rest:
            return []
    schedule, again = commit.schedule, {position for other in rest for position in other.positions}
    left = [position for position in commit.group.positions if position not in again]
    log.narrow(Group(left, set().union(*(inductor.operation_names(schedule[p]) for p in left))), schedule)
    return rest


def kernels_of_parts(commit: Commit) -> list[Kernel]:
    """Return the kernels of bands that had only a part of one, where nothing of the group was fused.

    Inductor has nodes in that kernel which share next to nothing, and one of them has more in common with another
    kernel.  Each kernel alone may still gain by other loops.
    """
    return [] if commit.done else [commit.schedule[position] for position in sorted(commit.parted)]


def _groups_of_rows(commit: Commit, options: Options) -> list[Group]:
    """Return groups without the kernels that keep rows from being a band; none where kernels were fused.

    First those of single results, as the mean of a loss: all nests of their group are in a loop of one iteration, and
    their rows are lanes of one band, or reduced.  Then sums of columns, for which columns go outermost: if the others
    have more in common than a launch is worth, as sums may not join what they become (their second stages, or loops
    over columns).
    """
    if commit.done:
        return []
    rest = _groups_of(_has_rows, commit, options)
    if rest is not None:
        return rest
    rest = _groups_of(_has_whole_columns, commit, options) or []
    return [other for other in rest if _have_in_common(other, commit)]


def _groups_of(has_rows: Callable[[Kernel], bool], commit: Commit, options: Options) -> list[Group] | None:
    """Return groups of those of a group's kernels of which a function is true; None where it is of all."""
    positions = {p for p in commit.group.positions if has_rows(commit.schedule[p])}
    if len(positions) == len(commit.group.positions):
        return None
    rest, _ = form_groups(commit.schedule, options.max_nodes, only=positions)
    return [other for other in rest if len(other.positions) > 1]


def _has_rows(kernel: Kernel) -> bool:
    """Return True if a kernel has several results."""
    return any(inductor.node_sizes(node)[0] for node in inductor.loop_nodes(kernel))


def _has_whole_columns(kernel: Kernel) -> bool:
    return not has_column_parts(kernel)


def _groups_without(position: int, commit: Commit, options: Options) -> list[Group]:
    """Return groups of a group's kernels but the one at a position."""
    rest, _ = form_groups(commit.schedule, options.max_nodes, only=set(commit.group.positions) - {position})
    for other in rest:
        other.tries, other.rows_of_segments = commit.group.tries, commit.group.rows_of_segments
    return rest


def _groups_without_rows_of_segments(band: set[int], commit: Commit, options: Options) -> list[Group]:
    """Return groups of the kernels of a refused band, whose passes reduce nothing that segments have reduced."""
    rest, _ = form_groups(commit.schedule, options.max_nodes, only=band)
    for other in rest:
        other.tries, other.rows_of_segments = commit.group.tries, False
    return [other for other in rest if len(other.positions) > 1]


def _groups_without_an_end(commit: Commit, options: Options) -> list[Group]:
    """Return groups without an end of a refused band, in which enough is left to be saved."""
    end = _end_of_refused_band(commit)
    rest = [] if end is None else _groups_without(end, commit, options)
    for other in rest:
        other.tries += 1
    return [other for other in rest if _may_save(other, commit)]


def _end_of_refused_band(commit: Commit) -> int | None:
    """Return the position of the kernel to leave out; None where something was fused, or all was tried."""
    bands = [band for band in commit.refused if len(band) > 1]
    if commit.done or not bands or commit.group.tries >= MOST_TRIES:
        return None
    band = max(bands, key=len)
    across = [position for position in band if has_column_parts(commit.schedule[position])]
    return min(across or (min(band), max(band)), key=lambda position: _shared_with_others(position, commit))


def _shared_with_others(position: int, commit: Commit) -> int:
    """Return the bytes of what a kernel has in common with others of its group, for each of these."""
    touched = inductor.bytes_touched(commit.schedule[position])
    others = [commit.schedule[p] for p in commit.group.positions if p != position]
    return sum(_common(touched, other) for other in others)


def _common(touched: dict[str, int], other: Kernel) -> int:
    known = inductor.bytes_touched(other)
    return sum(min(touched[name], known[name]) for name in touched.keys() & known.keys())


def _may_save(group: Group, commit: Commit) -> bool:
    """Return True if two kernels of a group pass on more than a launch is worth."""
    return _have_in_common(group, commit, _bytes_written)


def passes_much_on(commit: Commit) -> bool:
    """Return True if two kernels of a group that are not one now pass on more than a launch is worth."""
    of = {position: number for number, fused in enumerate(commit.done) for position in fused.positions}
    apart = (
        (commit.schedule[p] for p in pair)
        for pair in itertools.combinations(sorted(commit.group.positions), 2)
        if not set(pair) <= of.keys() or of[pair[0]] != of[pair[1]]
    )
    return any(_common(_bytes_written(one), other) >= LAUNCH_BYTES for one, other in apart)


def _bytes_written(kernel: Kernel) -> dict[str, int]:
    written = inductor.buffers_written(kernel)
    return {name: size for name, size in inductor.bytes_touched(kernel).items() if name in written}


def _have_in_common(
    group: Group, commit: Commit, bytes_of: Callable[[Kernel], dict[str, int]] = inductor.bytes_touched
) -> bool:
    """Return True if a kernel of a group touches more than a launch is worth of what one before it does.

    bytes_of: what counts of the one before, by buffer.
    """
    kernels = [commit.schedule[position] for position in group.positions]
    return any(
        _common(bytes_of(kernel), other) >= LAUNCH_BYTES
        for number, kernel in enumerate(kernels)
        for other in kernels[number + 1 :]
    )
