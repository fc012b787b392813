"""Launches that kernels share, within groups and among them: what is tried, and what it counts for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from .. import inductor
from ..options import Options
from ..reports import GroupReport, Report
from ..scheduling.grouping import Group, group_report
from ..support.error_boundary import attempt, try_step
from .peak_memory import Liveness, Room
from .shared_launch import (
    FRESH_BYTES,
    independent_sets,
    partition,
    positions_of,
    small_sources,
    small_strangers,
    strangers,
)


def share_launches(
    schedule: list[Any],
    groups: list[tuple[set[str], GroupReport]],
    options: Options,
    report: Report,
    room: Room | None,
) -> list[Any]:
    """The schedule with one launch for independent kernels, where that pays; groups of its own go into the report.

    groups: the operations of each group that was translated, and its entry in the report;
    room: for the whole graph, None where whether a launch pays does not matter.
    """
    live = None if options.force_fusion else try_step(partial(Liveness.of, schedule), None)
    if live is not None or options.force_fusion:  # what is not known to have room in memory is not tried
        sharing = _Sharing(options, report, live, room)
        schedule = sharing.among_groups(sharing.within_groups(schedule, groups))
    return schedule


@dataclass(frozen=True)
class _Sharing:
    """live, room: what the kernels need of memory, and what the graph may; None where that does not matter."""

    options: Options
    report: Report
    live: Liveness | None
    room: Room | None

    def within_groups(self, schedule: list[Any], groups: list[tuple[set[str], GroupReport]]) -> list[Any]:
        """The schedule with one launch for kernels of a group that stayed apart."""
        for names, entry in groups:
            schedule = self._share(schedule, partial(independent_sets, schedule, names), entry)
        return schedule

    def among_groups(self, schedule: list[Any]) -> list[Any]:
        """The schedule with one launch for kernels that no group has together."""
        for find, most_bytes in ((strangers, None), (small_strangers, FRESH_BYTES), (small_sources, FRESH_BYTES)):
            sets = try_step(partial(find, schedule), [])
            for family in [[schedule[p] for p in positions] for positions in sets]:
                schedule = self._share_as_a_group(schedule, family, most_bytes)
        return schedule

    def _share_as_a_group(self, schedule: list[Any], family: list[Any], most_bytes: int | None) -> list[Any]:
        """Kernels of no common group get an entry of their own, if they share a launch."""
        positions = positions_of(schedule, family)
        group = Group(positions, set().union(*map(inductor.operation_names, family)))
        describe = partial(group_report, f"group{len(self.report.groups)}", group, schedule)
        entry = try_step(describe, None, *group.names)
        if entry is None:
            return schedule
        schedule = self._share(schedule, lambda: [positions], entry, most_bytes)
        if entry.faults and not entry.fused:
            entry.refuse(*entry.faults[0])
        if entry.fused or entry.faults:
            self.report.groups.append(entry)
        return schedule

    def _share(
        self,
        schedule: list[Any],
        find_sets: Callable[[], list[list[int]]],
        entry: GroupReport,
        most_bytes: int | None = None,
    ) -> list[Any]:
        """The schedule with one launch for each set of independent kernels, given by position, where that pays."""
        with attempt(note=entry.keep_apart), entry.stage("siblings"):
            memory = self.live, self.room
            return partition(schedule, find_sets(), entry, most_bytes, memory, self.options.force_fusion)
        return schedule
