"""The one writer of a group's entry in the report."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from .. import inductor
from ..horizontal.shared_launch import SharedLaunches
from ..inductor.inspection import node_location
from ..inductor.protocols import Schedule
from ..lowering.triton.profitability import traffic, traffic_of_one
from ..reasons import Reason
from ..reports import FAULTS, GroupReport
from ..support.recorder import GroupRecord, recorder
from .grouping import Group
from .results import Fused, Transformed


@dataclass
class GroupLog:
    """Collects the results of a group's stages; `entry` makes the report's entry of them, when all are done.

    given: what is known of the group before anything is tried; saved: kernels that are gone;
    refusal: why it is not fused, None where it is, or nothing was said yet.
    """

    given: GroupReport
    record: GroupRecord | None = None
    fused: bool = False
    refusal: tuple[Reason, str] | None = None
    saved: int = 0
    transformed: Transformed = field(default_factory=Transformed)
    seconds: dict[str, float] = field(default_factory=dict)
    decisions: list[str] = field(default_factory=list)
    faults: list[tuple[Reason, str]] = field(default_factory=list)

    @staticmethod
    def open(name: str, graph: int, group: Group, schedule: Schedule) -> GroupLog:
        """Open the log of a group, before anything is tried."""
        nodes = [n for p in group.positions for n in inductor.loop_nodes(schedule[p])]
        locations = [where for where in map(node_location, nodes) if where is not None]
        kernels = [schedule[p] for p in group.positions]
        given = GroupReport(
            name,
            [n.get_name() for n in nodes],
            len(kernels),
            len(kernels),
            locations=locations,
            bytes_before=traffic([inductor.bytes_touched(kernel) for kernel in kernels]),
            bytes_if_one=traffic_of_one([inductor.bytes_touched(kernel, group.names) for kernel in kernels]),
            graph=graph,
        )
        return GroupLog(given, recorder().begin_group(kernels))

    @property
    def name(self) -> str:
        """Name of the group."""
        return self.given.name

    def refuse(self, reason: Reason, detail: str) -> None:
        """Note why the group stays as it is."""
        self.fused, self.refusal = False, (reason, detail)

    def refuse_band(self, reason: Reason, detail: str) -> None:
        """Note why kernels of one band stay as they are; of the group, too, where no other band was fused."""
        self.keep_apart(reason, detail)
        if not self.fused:
            self.refuse(reason, detail)

    def keep_apart(self, reason: Reason, detail: str) -> None:
        """Note why some of the group's kernels stay as they are."""
        self.decisions.append(f"apart [{reason.name}]: {detail}")
        self._note_fault(reason, detail)

    def lack(self, reason: Reason, detail: str) -> None:
        """Note why something is not said of the group; its kernels are as they would be."""
        self.decisions.append(f"not said [{reason.name}]: {detail}")
        self._note_fault(reason, detail)

    def _note_fault(self, reason: Reason, detail: str) -> None:
        if reason in FAULTS:
            self.faults.append((reason, detail))

    def take(self, fused: Fused) -> None:
        """Note a band that became one kernel."""
        self._gain(fused.decisions, len(fused.positions) - 1)

    def take_launches(self, shared: SharedLaunches) -> None:
        """Note launches that kernels of the group share, and why others do not."""
        for reason, detail in shared.refused:
            self.keep_apart(reason, detail)
        if shared.decisions:
            self._gain(shared.decisions, shared.saved)

    def _gain(self, decisions: tuple[str, ...], saved: int) -> None:
        self.decisions += decisions
        self.fused, self.refusal, self.saved = True, None, self.saved + saved

    def take_back(self, reason: Reason, detail: str) -> None:
        """Note that the group's kernels are Inductor's again."""
        self.decisions, self.saved = [], 0
        self.refuse(reason, detail)

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the wall time of the block to `seconds[name]`, and to Dynamo's times of compilation."""
        start = time.perf_counter()
        try:
            with recorder().timed(f"bridge.{name}"):
                yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def explain_refusal(self) -> None:
        """Note the passes' last word as the reason, where no step gave one."""
        if self.fused or self.refusal is not None:
            return
        if self.transformed.remarks:
            reason, text, where = self.transformed.remarks[-1]
            self.refuse(Reason[reason], f"{text} at {where}")
        else:
            self.refuse(Reason.no_common_band, "no two nests meet")

    def entry(self) -> GroupReport:
        """Return the group's entry in the report."""
        reason, detail = self.refusal or (None, "")
        return GroupReport(
            **{
                **vars(self.given),
                "kernels_after": self.given.kernels_before - self.saved,
                "fused": self.fused,
                "reason": reason,
                "detail": detail,
                "remarks": list(self.transformed.remarks),
                "counterexamples": list(self.transformed.counterexamples),
                "certificate": list(self.transformed.certificate),
                "seconds": dict(self.seconds),
                "decisions": list(self.decisions),
                "faults": list(self.faults),
                "record": self.record,
            }
        )
