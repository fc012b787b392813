"""The logs of one graph's groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from .. import inductor
from ..horizontal.shared_launch import SharedLaunches
from ..inductor.protocols import Kernel, Schedule
from ..reports import Report
from ..support.error_boundary import try_step
from .group_log import GroupLog
from .grouping import Group


@dataclass
class Logs:
    """Numbers the groups of a compilation, and writes their entries into its report.

    wholes: kernels of Inductor's that were taken apart, by each of their parts.
    """

    report: Report
    kept: list[GroupLog] = field(default_factory=list)
    wholes: dict[Kernel, Kernel] = field(default_factory=dict)

    def inductors(self, kernel: Kernel) -> Kernel:
        """Return a kernel, or the one of Inductor's that it is a part of."""
        return self.wholes.get(kernel, kernel)

    def open(self, group: Group, schedule: Schedule) -> GroupLog:
        """Return the log of a group, under the number that is next."""
        name = f"group{len(self.report.groups) + len(self.kept)}"
        return GroupLog.open(name, self.report.graphs, group, schedule, self.inductors)

    def keep(self, log: GroupLog) -> None:
        """Have the report get the log's entry."""
        self.kept.append(log)

    def owner(self, operations: frozenset[str] | set[str]) -> GroupLog | None:
        """Return the log of the group that has a kernel of these operations."""
        return next((log for log in self.kept if operations & set(log.given.nodes)), None)

    def take_launches(self, shared: SharedLaunches, log: GroupLog) -> None:
        """Note launches that kernels share, and in `log` why others do not.

        A launch is counted for the group of its first kernel, and is one less for the group of each other.
        """
        for reason, detail in shared.refused:
            log.keep_launches(reason, detail)
        for launch in shared.launches:
            first, *others = [self.owner(head) or log for head in launch.heads]
            first.take_launch(launch.decision)
            for guest in others:
                guest.join_launch(first, launch.decision)

    def write(self, schedule: Schedule) -> None:
        """Write all entries into the report, and count what became of the groups in the schedule that is final."""
        parts = try_step(partial(_parts_by_name, schedule), None) if self.kept else None
        counted: set[Kernel] = set()
        for log in self.kept:
            entry = try_step(partial(log.entry, parts, counted), log.entry(), *log.given.nodes)
            self.report.groups.append(entry)
            self.report.count_all(entry.outcomes)
            counted |= {parts[name][0] for name in log.given.nodes if parts is not None and name in parts}
        self.kept = []


def _parts_by_name(schedule: Schedule) -> dict[str, tuple[Kernel, str]]:
    """Return (kernel, name of its launch) by operation; kernels that share a launch are each for themselves."""
    parts = [(part, kernel.get_name()) for kernel in schedule for part in inductor.launch_parts(kernel)]
    return {name: known for known in parts for name in inductor.operation_names(known[0])}
