"""Launches that kernels share, within groups and among them: which sets are tried, in which order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from .. import inductor
from ..horizontal.candidates import (
    sets_of_equal_reductions,
    sets_of_group,
    sets_of_small_kernels,
    sets_with_common_reader,
)
from ..horizontal.cost import FRESH_BYTES
from ..horizontal.independence import positions_of
from ..horizontal.peak_memory import Liveness, Room
from ..horizontal.shared_launch import Budget, share_launches_of_sets
from ..inductor.protocols import Kernel, Schedule
from ..options import Options
from ..support.error_boundary import attempt, try_step
from .group_log import GroupLog
from .grouping import Group
from .logs import Logs


def share_launches(
    schedule: Schedule, groups: list[tuple[set[str], GroupLog]], options: Options, logs: Logs, room: Room | None
) -> Schedule:
    """Return the schedule with one launch for independent kernels, where that pays.

    groups: the operations of each, and its log; a launch has Inductor's own loops, so groups without a translation may
    share one. logs: gets groups of the launches' own; room: for the whole graph, None where whether a launch pays does
    not matter.
    """
    live = None if options.force_fusion else try_step(partial(Liveness.of, schedule), None)
    if live is None and not options.force_fusion:  # what is not known to have room in memory is not tried
        return schedule
    budget = Budget(live, room, force=options.force_fusion)
    for names, log in groups:
        schedule = _share(schedule, partial(sets_of_group, schedule, names), logs, log, budget)
    return _share_among_groups(schedule, logs, budget)


def _share_among_groups(schedule: Schedule, logs: Logs, budget: Budget) -> Schedule:
    """Return the schedule with one launch for kernels that no group has together."""
    small = replace(budget, most_bytes=FRESH_BYTES)
    for find, limits in (
        (sets_of_equal_reductions, budget),
        (sets_of_small_kernels, small),
        (sets_with_common_reader, small),
    ):
        sets = try_step(partial(find, schedule), [])
        for launch_set in [[schedule[p] for p in positions] for positions in sets]:
            schedule = _share_as_a_group(schedule, launch_set, logs, limits)
    return schedule


def _share_as_a_group(schedule: Schedule, launch_set: list[Kernel], logs: Logs, budget: Budget) -> Schedule:
    """Share a launch among kernels of no common group; those of no group have a log of their own, if they do."""
    positions = positions_of(schedule, launch_set)
    log, is_new = _log_of(schedule, launch_set, logs)
    if log is None:
        return schedule
    schedule = _share(schedule, lambda: [positions], logs, log, budget)
    if is_new and log.faults and not log.fused:
        log.refuse(*log.faults[0])
    if is_new and (log.fused or log.faults):
        logs.keep(log)
    return schedule


def _log_of(schedule: Schedule, launch_set: list[Kernel], logs: Logs) -> tuple[GroupLog | None, bool]:
    """Return (a new log for the kernels that no group has, True), or where there are none (that of one group, False).

    No kernel is in two groups.
    """
    owners = [logs.owner(inductor.operation_names(inductor.launch_parts(kernel)[0])) for kernel in launch_set]
    rest = [kernel for kernel, owner in zip(launch_set, owners, strict=True) if owner is None]
    if not rest:
        return owners[0], False
    group = Group(positions_of(schedule, rest), set().union(*map(inductor.operation_names, rest)))
    return try_step(partial(logs.open, group, schedule), None, *group.names), True


def _share(
    schedule: Schedule, find_sets: Callable[[], list[list[int]]], logs: Logs, log: GroupLog, budget: Budget
) -> Schedule:
    """Return the schedule with one launch for each set of independent kernels, given by position, where that pays."""
    with attempt(note=log.keep_launches), log.stage("horizontal"):
        shared = share_launches_of_sets(schedule, find_sets(), budget)
        logs.take_launches(shared, log)
        return shared.schedule
    return schedule
