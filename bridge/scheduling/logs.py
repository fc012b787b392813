"""The logs of one graph's groups."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..inductor.protocols import Schedule
from ..reports import Report
from .group_log import GroupLog
from .grouping import Group


@dataclass
class Logs:
    """Numbers the groups of a compilation, and writes their entries into its report."""

    report: Report
    kept: list[GroupLog] = field(default_factory=list)

    def open(self, group: Group, schedule: Schedule) -> GroupLog:
        """Return the log of a group, under the number that is next."""
        name = f"group{len(self.report.groups) + len(self.kept)}"
        return GroupLog.open(name, self.report.graphs, group, schedule)

    def keep(self, log: GroupLog) -> None:
        """Have the report get the log's entry."""
        self.kept.append(log)

    def write(self) -> None:
        """Write all entries into the report, and count what became of the groups."""
        for entry in [log.entry() for log in self.kept]:
            self.report.groups.append(entry)
            self.report.count_all(entry.outcomes)
        self.kept = []
