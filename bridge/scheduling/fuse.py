"""Go over the groups of a schedule: translate, transform, lift and commit each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from .. import inductor
from ..horizontal.column_sums import kernels_around
from ..horizontal.independence import positions_of
from ..horizontal.peak_memory import Room
from ..inductor.columns import has_column_parts
from ..inductor.memory import in_order_of_least_peak, keep_order_below
from ..inductor.mixed import is_mixed
from ..inductor.protocols import Kernel, Schedule
from ..lowering.triton import codegen
from ..options import Options
from ..reasons import Reason, Unsupported
from ..reports import Report
from ..support.error_boundary import attempt, boundary, try_step
from ..support.recorder import NO_STAGES, Stages, recorder
from .columns import Terms, add_up_columns
from .commit import Commit, pays
from .equal_loops import merge_equal_loops
from .group_log import GroupLog
from .grouping import Group, form_groups
from .later_loops import may_have_sums
from .launches import share_launches
from .logs import Logs
from .missing_guards import name_missing_guard
from .mixed_rows import Parts, put_together, take_apart
from .persistent_reductions import make_persistent_reductions
from .planes import try_in_planes
from .retry import groups_to_try_again, kernels_of_parts, may_do_without_rows_of_segments, passes_much_on
from .transformation import lift, transform
from .translation import (
    loop_bodies,
    nodes_to_translate,
    pipeline_of,
    sources_in_pieces,
    translate,
    translate_in_tiles,
)

if TYPE_CHECKING:
    from ..affine.translate.group import Translation

#: Tries to have a group's new kernels in `commit`.
_Way: TypeAlias = Callable[[Commit, Options, GroupLog], None]


@dataclass
class _Later:
    """Hold kernels of which is decided when sums of columns have joined others.

    waiting: those that may have other loops alone, and their cost with them, in bytes; parted: those of bands that had
    only a part of one; crowded: those of bands for which there is no memory, and how that is said.
    """

    waiting: dict[Kernel, int] = field(default_factory=dict)
    parted: list[Kernel] = field(default_factory=list)
    crowded: list[tuple[list[Kernel], str]] = field(default_factory=list)


def fuse_schedule(schedule: Schedule, options: Options, report: Report) -> Schedule:
    """Return the schedule with every group fused that is proven and liftable; all else as it was.

    Inductor orders kernels for the least peak of memory only after this.  They are in that order here, since one of
    theirs that is found once need not be found again when some have become one.
    """
    logs, given, ordered = Logs.of(report, schedule), schedule, schedule
    with boundary(options.strict, report.adder()):
        room, own = None, 0
        try:
            if not options.force_fusion:
                schedule = ordered = try_step(partial(in_order_of_least_peak, given), given)
                room = try_step(partial(Room.of, schedule), Room.unknown())
                own = room.most
            parted, taken = take_apart(schedule, logs)
            later = _Later()
            parted, seen = _fuse_groups(parted, options, logs, room, taken, later)
            schedule = put_together(schedule, parted, taken, logs, room)
            schedule = _join_columns(schedule, later, options, logs, room)
            # After the last fusion: a group's test for cycles does not know of launches that kernels share.
            schedule = merge_equal_loops(schedule, logs, room)
            schedule = share_launches(schedule, seen, options, logs, room)
            if options.persistent and options.unfused_rows:
                report.choices += try_step(partial(make_persistent_reductions, schedule, given), [])
            if room is not None and room.levels and schedule != ordered:
                try_step(partial(keep_order_below, schedule, room.most), None)
        finally:
            logs.write(schedule)
            if room is not None and room.most > own:  # by what mix-order kernels leave, which no estimate has
                report.peak_before = max(report.peak_before, room.most)
    return given if schedule == ordered else schedule


def _fuse_groups(
    schedule: Schedule, options: Options, logs: Logs, room: Room | None, taken: list[Parts], later: _Later
) -> tuple[Schedule, list[tuple[set[str], GroupLog]]]:
    """Return (the schedule with a kernel in the place of each band, operations and log of groups without a fault).

    taken: mix-order kernels, whose rows take part as kernels of their own; later: gets what sums of columns decide.
    """
    columns = positions_of(schedule, [parts.columns for parts in taken])
    only = set(range(len(schedule))) - set(columns)
    pending, refusals = try_step(partial(form_groups, schedule, options.max_nodes, only), ([], []))
    logs.report.refusals += refusals
    logs.report.count("groups_seen", len(pending))
    seen: list[tuple[set[str], GroupLog]] = []
    while pending:
        group = pending.pop(0)
        log = try_step(partial(logs.open, group, schedule), None, *group.names)
        if log is None:
            continue
        logs.keep(log)
        commit = Commit({}, group, schedule, room, taken, waits=may_have_sums)
        _try_group(commit, options, log)
        later.waiting |= commit.waiting
        later.crowded += commit.crowded
        again = try_step(partial(groups_to_try_again, commit, options, log), [], *group.names)
        later.parted += [] if again else kernels_of_parts(commit)
        own = group.names.difference(*(other.names for other in again))
        seen += [] if _is_faulty(log) else [(own, log)]
        pending = again + pending
        if commit.done:
            schedule = _replace_or_undo(pending, commit, log)
    return schedule, seen


def _join_columns(schedule: Schedule, later: _Later, options: Options, logs: Logs, room: Room | None) -> Schedule:
    """Return the schedule with sums of columns in the kernels of their rows, and what was to be decided after that."""
    terms = Terms(room, later.waiting)
    for kernels, said in later.crowded:
        schedule = _fuse_with_sums(schedule, kernels, said, options, logs, terms)
    schedule = add_up_columns(schedule, logs, terms)
    alone = dict.fromkeys([*later.waiting, *later.parted])
    return _give_other_loops(schedule, alone, options, logs, room)


def _fuse_with_sums(
    schedule: Schedule, kernels: list[Kernel], said: str, options: Options, logs: Logs, terms: Terms
) -> Schedule:
    """Return the schedule with one kernel of some for which sums of columns that join it leave enough memory.

    What only these sums read is not there any more then. As it was where none does: whether the graph needs more with
    the kernel is asked when they join. said: that it does without them.
    """
    found = [position for position, other in enumerate(schedule) if any(other is kernel for kernel in kernels)]
    log = logs.owner(inductor.operation_names(kernels[0]))
    if log is None or len(found) != len(kernels) or not _may_have_sums_alone(schedule, kernels):
        return schedule
    groups, _ = try_step(partial(form_groups, schedule, options.max_nodes, set(found)), ([], []))
    if len(groups) != 1:
        return schedule
    say_again, commit = logs.remember(), Commit({}, groups[0], schedule, Room.unknown())
    with attempt(), log.kept_remarks():
        _fuse_group(commit, options, log)
    fused = _replace_or_undo([], commit, log) if commit.done else schedule
    joined = schedule if fused is schedule else add_up_columns(fused, logs, terms)
    if joined is not fused:
        log.forget(said)
        return joined
    if fused is not schedule:
        commit.undo()
        codegen.put_back(kernels)
        log.take_back(Reason.not_profitable, said)
    say_again()
    return schedule


def _may_have_sums_alone(schedule: Schedule, kernels: list[Kernel]) -> bool:
    """Return True if sums of columns nearby may join kernels: not mix-order ones, which have memory of their own."""
    around = [other for kernel in kernels for other in kernels_around(schedule, kernel)]
    return not any(map(is_mixed, around)) and any(may_have_sums(schedule, kernel) for kernel in kernels)


def _give_other_loops(
    schedule: Schedule, waiting: Iterable[Kernel], options: Options, logs: Logs, room: Room | None
) -> Schedule:
    """Return the schedule with other loops for kernels that waited for sums of columns, where none has joined them."""
    for kernel in waiting:
        found = [position for position, other in enumerate(schedule) if other is kernel]
        log = logs.owner(inductor.operation_names(kernel))
        groups, _ = try_step(partial(form_groups, schedule, options.max_nodes, set(found)), ([], []))
        if log is None or not groups:
            continue
        commit = Commit({}, groups[0], schedule, room)
        with attempt(note=log.keep_apart), log.kept_remarks():
            _fuse_group(commit, options, log)
        if commit.done:
            schedule = _replace_or_undo([], commit, log)
    return schedule


def _replace_or_undo(groups: list[Group], commit: Commit, log: GroupLog) -> Schedule:
    """Return the schedule with a group's new kernels; if that fails, as it was."""

    def undo(reason: Reason, detail: str) -> None:
        commit.undo()
        log.take_back(reason, detail)

    with attempt(note=undo), log.stage("replace"):
        return _replace(commit.schedule, groups, commit)
    return commit.schedule


def _replace(schedule: Schedule, groups: list[Group], commit: Commit) -> Schedule:
    """Replace kernels, and let the groups that are still to come point at the same kernels as before."""
    kernels = commit.kernels
    scheduler = next(iter(kernels.values())).scheduler
    changed = codegen.replace_kernels(scheduler, schedule, kernels, commit.removed)
    new_positions = {id(kernel): i for i, kernel in enumerate(changed)}
    for group in groups:
        group.positions = [new_positions[id(schedule[p])] for p in group.positions if id(schedule[p]) in new_positions]
    return changed


def _try_group(commit: Commit, options: Options, log: GroupLog) -> None:
    """Have the group's new kernels in `commit`, or log why not."""
    _try_in_rows(commit, options, log)
    if _may_gain_otherwise(commit, log):
        _try_otherwise_instead(commit, options, log, (_try_in_planes, _try_in_pieces))
    elif not log.faults and _may_be_in_pieces(commit):
        _try_otherwise_instead(commit, options, log, (_try_in_pieces,))
    for otherwise in (_try_in_planes, _try_in_pieces):
        if not commit.done and not _is_faulty(log):
            with attempt(note=log.lack):
                otherwise(commit, options, log)
    if not commit.done and not _is_faulty(log):
        with attempt(note=log.lack):
            name_missing_guard(commit.group, commit.schedule, options, log)


def _is_faulty(log: GroupLog) -> bool:
    return log.refusal is not None and log.refusal[0] is Reason.internal_error


def _try_in_pieces(commit: Commit, options: Options, log: GroupLog) -> None:
    """Do as `_try_passes` with loops in which one iteration has what one of another node reads, if there are others."""
    group = commit.group
    if sources_in_pieces(group, commit.schedule) is None:
        return
    culprit = group.culprit
    group.in_pieces = group.rows_of_segments = True
    commit.refused.clear()
    earlier = log.set_aside()
    _try_passes(commit, options, log)
    group.in_pieces = bool(commit.done)
    if not commit.done:
        group.culprit = culprit
        log.say_again(earlier)


def _try_in_planes(commit: Commit, options: Options, log: GroupLog) -> None:
    try_in_planes(commit, log, partial(_try_in_rows, commit, options, log))


def _may_gain_otherwise(commit: Commit, log: GroupLog) -> bool:
    """Return True if only kernels alone got other loops, and one kernel of all would move fewer bytes."""
    alone = all(len(fused.positions) == 1 for fused in commit.done)
    return bool(commit.done) and alone and not log.faults and log.given.bytes_if_one < log.given.bytes_before


def _may_be_in_pieces(commit: Commit) -> bool:
    """Return True if only some kernels became one, and loops in pieces may have those that pass much on, too."""
    return bool(commit.done) and passes_much_on(commit) and sources_in_pieces(commit.group, commit.schedule) is not None


def _try_otherwise_instead(commit: Commit, options: Options, log: GroupLog, ways: Sequence[_Way]) -> None:
    """Try ways, as planes, with Inductor's loops; have the other loops again where no more kernels become one."""
    rows_of_segments, spared = commit.group.rows_of_segments, commit.spared
    for otherwise in ways:
        commit.take_back()
        log.begin_again()
        with attempt(note=log.lack):
            otherwise(commit, options, log)
        if commit.spared > spared:
            return
        commit.group.in_pieces, commit.group.rows_of_segments = False, rows_of_segments
    commit.take_back()
    log.begin_again()
    _try_passes(commit, options, log)


def _try_in_rows(commit: Commit, options: Options, log: GroupLog) -> None:
    """Do as `_try_passes`, and again without rows of segments where nothing came of it.

    A row that segments reduced before may be too long for a kernel that could have the segments alone.
    """
    _try_passes(commit, options, log)
    if not commit.done and may_do_without_rows_of_segments(commit, options, log):
        commit.group.rows_of_segments = False
        commit.refused.clear()
        _try_passes(commit, options, log)


def _try_passes(commit: Commit, options: Options, log: GroupLog) -> None:
    """Have the group's new kernels in `commit`, or log why not."""
    with attempt(note=log.refuse):
        _fuse_group(commit, options, log)


def _fuse_group(commit: Commit, options: Options, log: GroupLog) -> None:
    """Have the bands of a group in `commit`, each as soon as it is a kernel; nothing after that may fail."""
    group, schedule = commit.group, commit.schedule
    stages = try_step(partial(_open_stages, options, log), NO_STAGES, *group.names)
    translation = None
    with attempt(note=log.leave_tiles):
        translation = _fuse_in_tiles(commit, options, log, stages)
    if translation is None:
        with log.stage("translate"):
            commit.nodes, translation = translate(group, schedule, options, stages, log.name)
        log.transformed = transform(translation, pipeline_of(options, group, translation), options, stages, log.stage)
        with log.stage("lift"):
            _lift_and_commit(translation, commit, options, log)
    if not commit.done:
        log.explain_refusal()
    stages.loop_bodies("lifted-loop-ir.txt", loop_bodies(commit.kernels.values()))
    with attempt(note=log.lack):
        pipeline = pipeline_of(options, group, translation)
        recorder().finish_group(log.record, log.fused, translation.symbols, pipeline)


def _fuse_in_tiles(commit: Commit, options: Options, log: GroupLog, stages: Stages) -> Translation | None:
    """Have all of a group as one kernel over blocks of a tile; None where it reduces no such blocks.

    Unsupported, with nothing changed, where that kernel is refused: it is worth it only for all that is reduced.
    """
    group, schedule = commit.group, commit.schedule
    with log.stage("translate"):
        commit.nodes = nodes_to_translate(group, schedule, options)
        translation = translate_in_tiles(group, schedule, options, stages, log.name)
    if translation is None:
        return None
    transformed = transform(translation, pipeline_of(options, group, translation), options, stages, log.stage)
    with log.stage("lift"), translation.module.context:
        _, bands = lift(translation, options, group)
        if len(bands) != 1 or {node.name for node in bands[0].nodes} != commit.nodes.keys():
            raise Unsupported(Reason.no_common_band, f"{len(bands)} kernels")
        if bands[0].registers and not bands[0].in_registers:
            raise Unsupported(Reason.not_profitable, f"a block takes {bands[0].registers} registers")
        commit.commit(bands[0], log)
    log.transformed = transformed
    return translation


def _open_stages(options: Options, log: GroupLog) -> Stages:
    return recorder().open_stages(log.name, options.dump_dir, log.record)


def _lift_and_commit(translation: Translation, commit: Commit, options: Options, log: GroupLog) -> None:
    group = commit.group
    # Second stages that are one kernel, as another band has no lift, would keep their sums from the rows (columns.py).
    of_columns = any(has_column_parts(commit.schedule[position]) for position in group.positions)
    with translation.module.context:
        tables, bands = lift(translation, options, group, None if of_columns else log.refuse_band)
        judged = options.persistent and not options.force_fusion
        if tables.simt_target and judged and not codegen.times_fusions(group.device):
            bands = [band for band in bands if pays(band, commit, log)]
        commit.commit_all(bands, log)
