"""Hold the logs of one graph's groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate

from .. import inductor
from ..horizontal.shared_launch import SharedLaunches
from ..inductor import inspection
from ..inductor.protocols import Kernel, Schedule
from ..lowering.triton.profitability import traffic
from ..reports import Report
from ..support.error_boundary import try_step
from .group_log import GroupLog, Share
from .grouping import Group


@dataclass
class Logs:
    """Number the groups of a compilation, and write their entries into its report.

    wholes: kernels of Inductor's that were taken apart, by each of their parts; unwritten: operations that Inductor
    generates no code for: library calls, and second stages that PyTorch adds up for a mix-order kernel.
    """

    report: Report
    unwritten: frozenset[str] = frozenset()
    kept: list[GroupLog] = field(default_factory=list)
    wholes: dict[Kernel, Kernel] = field(default_factory=dict)

    def inductors(self, kernel: Kernel) -> Kernel:
        """Return a kernel, or the one of Inductor's that it is a part of."""
        return self.wholes.get(kernel, kernel)

    def open(self, group: Group, schedule: Schedule) -> GroupLog:
        """Return the log of a group, under the number that is next."""
        name = f"group{len(self.report.groups) + len(self.kept)}"
        return GroupLog.open(name, self.report.graphs, group, schedule, self.inductors, self.unwritten)

    @staticmethod
    def of(report: Report, schedule: Schedule) -> Logs:
        """Return the logs of a graph whose kernels are Inductor's."""
        left = [kernel for kernel in schedule if not inspection.is_generated(kernel)]
        return Logs(report, frozenset[str]().union(*map(inductor.operation_names, left)))

    def keep(self, log: GroupLog) -> None:
        """Have the report get the log's entry."""
        self.kept.append(log)

    def owner(self, operations: frozenset[str] | set[str]) -> GroupLog | None:
        """Return the log of the group that has a kernel of these operations."""
        return next((log for log in self.kept if operations & set(log.given.nodes)), None)

    def remember(self) -> Callable[[], None]:
        """Return what has the logs say of kernels that stay apart what they say now; a fault in between is counted."""
        said = [(log, list(log.apart), list(log.decisions)) for log in self.kept]
        refusals = list(self.report.refusals)

        def say_again() -> None:
            """Forget what was tried."""
            self.report.refusals[:] = refusals
            for log, apart, decisions in said:
                log.apart, log.decisions = apart, decisions

        return say_again

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
        shares = try_step(partial(_shares, self.kept, parts), {}) if parts else {}
        for log in self.kept:
            entry = try_step(partial(log.entry, parts, shares.get(log.name)), log.entry(), *log.given.nodes)
            self.report.groups.append(entry)
            self.report.count_all(entry.outcomes)
        self.kept = []


def _shares(logs: list[GroupLog], parts: dict[str, tuple[Kernel, str]]) -> dict[str, dict[Kernel, Share]]:
    """Return by group its shares of kernels of several groups: what it moved before for the nodes that are in one."""
    moved: dict[Kernel, dict[str, int]] = {}
    for log in logs:
        for kernel, nodes in _nodes_by_kernel(log, parts).items():
            own = [known for known in log.given.kernels if nodes.intersection(known.nodes)]
            moved.setdefault(kernel, {})[log.name] = max(traffic([known.moved for known in own]), 1)
    shares: dict[str, dict[Kernel, Share]] = {}
    for kernel, by_group in moved.items():
        ends = accumulate(by_group.values())
        for (name, own_bytes), end in zip(by_group.items(), ends, strict=True):
            shares.setdefault(name, {})[kernel] = Share(end - own_bytes, own_bytes, sum(by_group.values()))
    return shares


def _nodes_by_kernel(log: GroupLog, parts: dict[str, tuple[Kernel, str]]) -> dict[Kernel, set[str]]:
    """Return the nodes of a group that are in each kernel; none of a group that stays as it was."""
    found: dict[Kernel, set[str]] = {}
    for name in log.given.nodes:
        if log.fused and name in parts:
            found.setdefault(parts[name][0], set()).add(name)
    return found


def _parts_by_name(schedule: Schedule) -> dict[str, tuple[Kernel, str]]:
    """Return (kernel, name of its launch) by operation; kernels that share a launch are each for themselves."""
    parts = [(part, kernel.get_name()) for kernel in schedule for part in inductor.launch_parts(kernel)]
    return {name: known for known in parts for name in inductor.operation_names(known[0])}
