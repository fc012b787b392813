"""Write a group's entry in the report; nothing else does."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from .. import inductor
from ..inductor.inspection import is_generated, node_location
from ..inductor.protocols import Kernel, Schedule, Scheduler
from ..lowering.triton import codegen
from ..lowering.triton.profitability import traffic, traffic_of_one
from ..reasons import Reason
from ..reports import FAULTS, Done, GroupReport, KernelReport
from ..support.recorder import GroupRecord, recorder
from .grouping import Group
from .results import Fused, Transformed

#: Gives a kernel, or the one of Inductor's that it is a part of.
Inductors: TypeAlias = Callable[[Kernel], Kernel]


@dataclass(frozen=True)
class Share:
    """Say how much of a kernel of several groups one's entry has: `own` of `total`, after `earlier` of other groups."""

    earlier: int
    own: int
    total: int

    def of(self, amount: int) -> int:
        """Return the share of an amount; those of all groups add up to it."""
        return amount * (self.earlier + self.own) // self.total - amount * self.earlier // self.total


def _same(kernel: Kernel) -> Kernel:
    return kernel


@dataclass
class GroupLog:
    """Collect the results of a group's stages; `entry` makes the report's entry of them, when all are done.

    given: what is known of the group before anything is tried;
    refusal: why it is not fused, None where it is, or nothing was said yet; done: what was changed;
    inductors: for kernels that are parts of others while groups are fused; unwritten: operations that Inductor
    generates no code for.
    """

    given: GroupReport
    record: GroupRecord | None = None
    inductors: Inductors = _same
    unwritten: frozenset[str] = frozenset()
    fused: bool = False
    refusal: tuple[Reason, str] | None = None
    done: Done = field(default_factory=Done)
    transformed: Transformed = field(default_factory=Transformed)
    seconds: dict[str, float] = field(default_factory=dict)
    decisions: list[str] = field(default_factory=list)
    apart: list[tuple[Reason, str]] = field(default_factory=list)
    own_launches: list[tuple[Reason, str]] = field(default_factory=list)
    faults: list[tuple[Reason, str]] = field(default_factory=list)

    @staticmethod
    def open(
        name: str,
        graph: int,
        group: Group,
        schedule: Schedule,
        inductors: Inductors = _same,
        unwritten: frozenset[str] = frozenset(),
    ) -> GroupLog:
        """Open the log of a group, before anything is tried, of the kernels that Inductor has."""
        kernels = [inductors(schedule[p]) for p in group.positions]
        given = _given(name, graph, group, kernels, unwritten)
        return GroupLog(given, recorder().begin_group(kernels), inductors, unwritten)

    def narrow(self, group: Group, schedule: Schedule) -> None:
        """Have the log speak of a part of its group only: the rest is tried again, as groups of its own.

        What Inductor's kernels move is what it was: nodes of those that were fused have Bridge's loops by now.
        """
        kernels = [self.inductors(schedule[p]) for p in group.positions]
        launches = {kernel.get_name() for kernel in kernels}
        known = [kernel for kernel in self.given.kernels if kernel.launch in launches]
        moved = [_moved_in(group, kernels[0].scheduler, kernel) for kernel in known]
        self.given = _entry_of(self.name, self.given.graph, kernels, known, moved, self.unwritten)
        if self.record is not None:
            self.record = self.record.of_part(set(self.given.nodes), with_stages=self.fused)

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
        """Note why some of the group's kernels stay as they are; once, where several tries end in the same."""
        if (reason, detail) in self.apart:
            return
        self.apart.append((reason, detail))
        self.decisions.append(f"apart [{reason.name}]: {detail}")
        self._note_fault(reason, detail)

    def forget(self, detail: str) -> None:
        """Say no more that kernels stay apart, which they do not."""
        self.apart = [(reason, known) for reason, known in self.apart if known != detail]
        self.decisions = [line for line in self.decisions if not (line.startswith("apart") and line.endswith(detail))]

    def keep_launches(self, reason: Reason, detail: str) -> None:
        """Note why kernels of the group share no launch with others, which does not say why they are no one kernel."""
        self.own_launches.append((reason, detail))
        self.decisions.append(f"own launches [{reason.name}]: {detail}")
        self._note_fault(reason, detail)

    def leave_tiles(self, reason: Reason, detail: str) -> None:
        """Note why the group is no kernel over blocks of a tile; it is tried in rows."""
        self.decisions.append(f"not in blocks of a tile [{reason.name}]: {detail}")
        self._note_fault(reason, detail)

    def lack(self, reason: Reason, detail: str) -> None:
        """Note why something is not said of the group; its kernels are as they would be."""
        self.decisions.append(f"not said [{reason.name}]: {detail}")
        self._note_fault(reason, detail)

    def set_aside(self) -> tuple[tuple[Reason, str] | None, list[tuple[Reason, str]]]:
        """Return why kernels stay apart, and say nothing of it: in other loops they may not."""
        earlier = self.refusal, self.apart
        self.refusal, self.apart = None, []
        return earlier

    def say_again(self, earlier: tuple[tuple[Reason, str] | None, list[tuple[Reason, str]]]) -> None:
        """Give what was set aside as the reason, where other loops have come to nothing; a fault in them is counted."""
        refusal, apart = earlier
        self.refusal, self.apart = refusal or self.refusal, [*apart, *self.apart]

    def _note_fault(self, reason: Reason, detail: str) -> None:
        if reason in FAULTS:
            self.faults.append((reason, detail))

    def take(self, fused: Fused) -> None:
        """Note a band that became one kernel."""
        self.decisions += fused.decisions
        self._gain(self.done.with_band(len(fused.positions)))

    def take_launch(self, decision: str) -> None:
        """Note a launch that a kernel of the group shares with others, which run in its place in the schedule."""
        self.decisions.append(decision)
        self._gain(replace(self.done, launches=self.done.launches + 1))

    def join_launch(self, first: GroupLog, decision: str) -> None:
        """Note that a kernel of the group has no launch of its own any more: it runs in one that `first` has."""
        if first is not self:
            self.decisions.append(f"in a launch of {first.name}: {decision}")
        self._gain(replace(self.done, joined=self.done.joined + 1))

    def divide(self) -> None:
        """Note a kernel of the group that is two now, the first of which is in a band."""
        self._gain(replace(self.done, divided=self.done.divided + 1))

    def spare_sums(self, launches: int) -> None:
        """Note launches of PyTorch's that nothing needs any more."""
        self._gain(replace(self.done, sums=self.done.sums + launches))

    def _gain(self, done: Done) -> None:
        """Note that something was done; what kept the kernels apart is still said where they only share a launch."""
        if self.refusal is not None and self.refusal not in self.apart:
            self.keep_apart(*self.refusal)
        self.fused, self.refusal, self.done = True, None, done

    def begin_again(self) -> None:
        """Say nothing of what was tried; a fault in it is counted."""
        self.fused, self.refusal, self.done = False, None, Done()
        self.apart, self.decisions = [], []

    def take_back(self, reason: Reason, detail: str) -> None:
        """Note that the group's kernels are Inductor's again."""
        self.decisions, self.done = [], Done()
        self.refuse(reason, detail)

    @contextlib.contextmanager
    def kept_remarks(self) -> Iterator[None]:
        """Have the passes' remarks be those of before the block, whatever they say in it; what isl proves is added."""
        earlier = self.transformed
        try:
            yield
        finally:
            proven = () if self.transformed is earlier else self.transformed.certificate
            self.transformed = replace(earlier, certificate=(*earlier.certificate, *proven))

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
        if not self.fused and self.refusal is None:
            self.refuse(*self._last_word())

    def _last_word(self) -> tuple[Reason, str]:
        if not self.transformed.remarks:
            return Reason.no_common_band, "no two nests meet"
        reason, text, where = self.transformed.remarks[-1]
        return Reason[reason], f"{text} at {where}"

    def _why_apart(self, now: list[KernelReport]) -> list[tuple[Reason, str]]:
        """Return why kernels stayed apart; the passes' last word where some were fused and no step gave a reason."""
        unsaid = self.fused and not self.apart and len(now) > 1
        return [self._last_word()] if unsaid else list(self.apart)

    def _newly_written(self, parts: Mapping[str, tuple[Kernel, str]]) -> int:
        """Count the kernels of the group that Inductor generates no code for, and that have code now."""
        known = [kernel.nodes for kernel in self.given.kernels if self.unwritten.issuperset(kernel.nodes)]
        finals = [parts[name][0] for name, *_ in known if name in parts]
        return sum(map(is_generated, finals))

    def entry(
        self, parts: Mapping[str, tuple[Kernel, str]] | None = None, shares: Mapping[Kernel, Share] | None = None
    ) -> GroupReport:
        """Return the group's entry in the report; parts: the final schedule's (kernel, launch's name) by operation.

        shares: of the kernels that are other groups', too.
        """
        reason, detail = self.refusal or (None, "")
        now, apart, done = self.given.kernels, list(self.apart), self.done
        if self.fused and parts is not None:
            now = _kernels_of(self.given.nodes, parts, shares or {})
            apart = self._why_apart(now)
            done = replace(done, generated=self._newly_written(parts))
        return GroupReport(
            **{
                **vars(self.given),
                "kernels_after": self.given.kernels_before - done.saved,
                "bytes_after": traffic([kernel.moved for kernel in now]),
                "kernels_now": now,
                "done": done,
                "fused": self.fused,
                "reason": reason,
                "detail": detail,
                "remarks": list(self.transformed.remarks),
                "counterexamples": list(self.transformed.counterexamples),
                "certificate": list(self.transformed.certificate),
                "seconds": dict(self.seconds),
                "decisions": list(self.decisions),
                "apart": apart,
                "own_launches": list(self.own_launches),
                "faults": list(self.faults),
                "record": self.record,
            }
        )


def _given(
    name: str, graph: int, group: Group, kernels: list[Kernel], unwritten: frozenset[str] = frozenset()
) -> GroupReport:
    """Return the entry of a group as Inductor has it; unwritten: operations that it generates no code for."""
    known = [_kernel(kernel, kernel.get_name()) for kernel in kernels]
    moved = [inductor.bytes_touched(kernel, group.names) for kernel in kernels]
    return _entry_of(name, graph, kernels, known, moved, unwritten)


def _entry_of(
    name: str,
    graph: int,
    kernels: list[Kernel],
    known: list[KernelReport],
    moved: list[dict[str, int]],
    unwritten: frozenset[str],
) -> GroupReport:
    """Return the entry of Inductor's kernels; known, moved: what each is, and what it would touch in one kernel."""
    nodes = [n for kernel in kernels for n in inductor.loop_nodes(kernel)]
    count = sum(not unwritten.issuperset(kernel.nodes) for kernel in known)
    return GroupReport(
        name,
        [n.get_name() for n in nodes],
        count,
        count,
        locations=[where for where in map(node_location, nodes) if where is not None],
        bytes_before=traffic([kernel.moved for kernel in known]),
        bytes_if_one=traffic_of_one(moved),
        graph=graph,
        kernels=known,
    )


def _moved_in(group: Group, scheduler: Scheduler, kernel: KernelReport) -> dict[str, int]:
    """Return what a kernel moves that others than the group's use."""
    return {name: n for name, n in kernel.moved.items() if not inductor.stays_inside(scheduler, name, group.names)}


def _kernel(kernel: Kernel, launch: str) -> KernelReport:
    nodes = [n.get_name() for n in inductor.loop_nodes(kernel)]
    moved = inductor.bytes_touched(kernel)
    moved |= {name: inductor.buffer_bytes(name) for name in _between_passes(kernel) - moved.keys()}
    return KernelReport(nodes, moved, inductor.buffers_written(kernel), launch)


def _between_passes(kernel: Kernel) -> set[str]:
    """Return what a kernel makes for itself, and stores all the same: its loop over a row has a later pass for it."""
    if not inductor.is_loop_kernel(kernel) or not inductor.generates_triton(inductor.device_of(kernel)):
        return set()
    return codegen.stored_between_passes(kernel) if inductor.bytes_read_back(kernel) else set()


def _kernels_of(
    nodes: list[str], parts: Mapping[str, tuple[Kernel, str]], shares: Mapping[Kernel, Share]
) -> list[KernelReport]:
    found = {id(parts[name][0]): parts[name] for name in nodes if name in parts}
    known = [(part, _kernel(part, launch)) for part, launch in found.values()]
    return [_share_of(kernel, shares[part]) if part in shares else kernel for part, kernel in known]


def _share_of(kernel: KernelReport, share: Share) -> KernelReport:
    return replace(kernel, moved={name: share.of(amount) for name, amount in kernel.moved.items()})
