"""Say what the last compilation did: one entry a group, with the time of every stage."""

from __future__ import annotations

import contextlib
import copy
import html
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from .reasons import Reason, Refusal

if TYPE_CHECKING:  # It loads sympy, and `import bridge` is to be quick.
    from .graph_passes.saved_values import SavedValue
    from .support.recorder import GroupRecord

#: Reasons that somebody can do something about: these are said in a warning too.
FAULTS = frozenset(
    {
        Reason.mlir_missing,
        Reason.plugin_missing,
        Reason.plugin_version_mismatch,
        Reason.torch_version,
        Reason.pass_failed,
        Reason.pass_crashed,
        Reason.pass_timeout,
        Reason.recheck_failed,
        Reason.internal_error,
    }
)


@dataclass(frozen=True)
class Counterexample:
    """Hold why two loops must not meet: two iterations and the element that they collide on.

    reason / text / location: of the remark; accesses: what the first and the second do, as (words, location).
    """

    reason: str
    text: str
    location: str
    accesses: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return "; ".join(f"{words}, {where}" for words, where in self.accesses)


@dataclass(frozen=True)
class NodeName:
    """Hold what the user calls a scheduler node: operations, `mean`, `mul`, and the line (file, number) of the last."""

    operations: tuple[str, ...]
    place: tuple[str, int] | None


@dataclass(frozen=True)
class KernelReport:
    """Hold a kernel of generated code.

    nodes: its scheduler nodes; moved: bytes that it moves at typical sizes, by buffer (of a kernel in several groups
    each has a share, by what it moved before); written: buffers that it writes; launch: name of the launch that it is
    in, alone or with others.
    """

    nodes: list[str]
    moved: dict[str, int] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    launch: str = ""


@dataclass(frozen=True)
class Done:
    """Count what was done with the kernels of a group.

    merged: kernels that are now in one of the `bands` kernels of fused loops; restructured: kernels that stayed what
    they were, with other loops; launches: of its kernels that others run in, too; joined: its kernels that run in the
    launch of another, of this group or not; sums: launches of PyTorch's that added up columns, which no count has;
    divided: its kernels that are two now, each of which may be in a band; generated: its kernels for which Inductor has
    no code, as PyTorch does for it what they do.
    """

    merged: int = 0
    bands: int = 0
    restructured: int = 0
    launches: int = 0
    joined: int = 0
    sums: int = 0
    divided: int = 0
    generated: int = 0

    @property
    def saved(self) -> int:
        """Return the launches of the group that are gone."""
        return self.merged - self.bands + self.joined - self.divided - self.generated

    def with_band(self, kernels: int) -> Done:
        """Return the same, and one kernel in the place of several, or one with other loops."""
        if kernels == 1:
            return replace(self, restructured=self.restructured + 1)
        return replace(self, merged=self.merged + kernels, bands=self.bands + 1)

    def __str__(self) -> str:
        parts = []
        if self.merged:
            parts.append(f"{self.merged} kernels merged into {self.bands}")
        if self.restructured:
            parts.append(f"{self.restructured} kernel{'s' if self.restructured > 1 else ''} with other loops")
        if self.launches or self.joined:
            parts.append(f"launch shared, {self.joined} saved" if self.joined else "launch shared with another group")
        if self.sums:
            parts.append(f"{self.sums} sum{'s' if self.sums > 1 else ''} by PyTorch saved")
        if self.divided:
            parts.append(f"{self.divided} kernel{'s' if self.divided > 1 else ''} divided in two")
        if self.generated:
            parts.append(f"{self.generated} kernel{'s' if self.generated > 1 else ''} for sums by PyTorch")
        return "; ".join(parts) or "nothing changed"


@dataclass(frozen=True)
class GroupReport:
    """Hold one group of kernels, as it was left.

    nodes: scheduler nodes in it, none of which another group has; fused: whether at least one kernel of Bridge's came
    out; done: what was done;
    reason / detail: why not, where it was not; kernels_before / kernels_after: kernels of the group;
    seconds: time of each stage; remarks: what the passes said, as (reason, text, location);
    bytes_before / bytes_after / bytes_if_one: what its kernels move, before and after, and what one in their place
    would, at typical sizes; kernels / kernels_now: the kernels before and after;
    certificate: with option recheck, what isl proved of the fused loops; graph: its number in the compilation;
    counterexamples: of the remarks that are dependences; record: what `bridge.explain` asks for, else None;
    apart: (reason, detail) of kernels that stayed apart; own_launches: of those that share no launch;
    faults: (reason, detail) of what somebody can do something about, in a part of it.
    """

    name: str
    nodes: list[str]
    kernels_before: int
    kernels_after: int
    fused: bool = False
    reason: Reason | None = None
    detail: str = ""
    locations: list[tuple[str, int]] = field(default_factory=list)
    remarks: list[tuple[str, str, str]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    decisions: list[str] = field(default_factory=list)
    apart: list[tuple[Reason, str]] = field(default_factory=list)
    certificate: list[str] = field(default_factory=list)
    bytes_before: int = 0
    bytes_after: int = 0
    bytes_if_one: int = 0
    done: Done = field(default_factory=Done)
    kernels: list[KernelReport] = field(default_factory=list)
    kernels_now: list[KernelReport] = field(default_factory=list)
    graph: int = 0
    counterexamples: list[Counterexample] = field(default_factory=list)
    record: GroupRecord | None = None
    faults: list[tuple[Reason, str]] = field(default_factory=list)
    own_launches: list[tuple[Reason, str]] = field(default_factory=list)

    @property
    def outcomes(self) -> list[str]:
        """Say what became of it, by the names of the counters: fused or why not, and the faults of its parts."""
        reasons = {reason for reason, _ in self.faults}
        if not self.fused and self.reason is not None:
            reasons.add(self.reason)
        return [*(["groups_fused"] if self.fused else []), *sorted(f"refused.{reason.name}" for reason in reasons)]

    def withdrawn(self, detail: str) -> GroupReport:
        """Return the entry of a group that was fused in a graph for which there was no code then."""
        return replace(
            self,
            fused=False,
            reason=Reason.internal_error,
            detail=detail,
            kernels_after=self.kernels_before,
            bytes_after=self.bytes_before,
            kernels_now=self.kernels,
            done=Done(),
        )


@dataclass
class Report:
    """Hold the groups of one compilation (of every graph in it) and the kernels that could not take part.

    graphs: how many graphs Inductor scheduled, none where they all came from its cache;
    kernels_before / kernels_after: kernels that code is generated for, library calls not counted; each of
    those that Inductor's option `combo_kernels` puts into one launch;
    bytes_before / bytes_after: that these move, at typical sizes; peak_before / peak_after: of the graph that needs
    most memory, as Inductor estimates it, in bytes, and with the partial sums of mix-order kernels that are gone;
    library_calls: that no code is generated for;
    device: `cpu`, or the architecture of the GPU, `sm_90`; compile_seconds: of the backend, all in all;
    names: what the user calls a node, by (graph, node);
    choices: what was decided about kernels that stay Inductor's;
    saved: by (compilation, name), what the forwards save for their backwards and could be computed again; notes: what
    the user may do about it;
    counters: what was added to `torch._dynamo.utils.counters["bridge"]`; seconds: time that no group took.
    """

    groups: list[GroupReport] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    choices: list[str] = field(default_factory=list)
    saved: dict[tuple[str, str], SavedValue] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    graphs: int = 0
    kernels_before: int = 0
    kernels_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    peak_before: int = 0
    peak_after: int = 0
    library_calls: int = 0
    device: str = "cpu"
    compile_seconds: float = 0.0
    names: dict[tuple[int, str], NodeName] = field(default_factory=dict)

    @property
    def fused(self) -> list[GroupReport]:
        return [g for g in self.groups if g.fused]

    @property
    def total_seconds(self) -> float:
        """Time of all stages of Bridge's in the compilation."""
        return sum(self.seconds.values()) + sum(sum(g.seconds.values()) for g in self.groups)

    def count(self, name: str, amount: int = 1) -> None:
        self.counters[name] = self.counters.get(name, 0) + amount

    def adder(self) -> Callable[[Refusal], None]:
        """Return what adds refusals from now on, each once: what several steps ask in vain is one fault."""
        earlier = len(self.refusals)
        return lambda refusal: None if refusal in self.refusals[earlier:] else self.refusals.append(refusal)

    def leave(self, nodes: list[str], reason: Reason, detail: str) -> None:
        """Add a refusal, and count it: for what no graph counts."""
        self.refusals.append(Refusal(nodes, reason, detail))
        self.count(f"refused.{reason.name}")

    def leave_all(self, reason: Reason, detail: str) -> None:
        self.leave([], reason, detail)

    def reasons(self) -> Iterator[tuple[Reason, str]]:
        """Yield why groups, parts of them and kernels were left alone, each with the detail."""
        for group in self.groups:
            if group.reason is not None:
                yield group.reason, group.detail
            yield from group.faults
        yield from ((refusal.reason, refusal.detail) for refusal in self.refusals)

    def count_all(self, names: Iterable[str]) -> None:
        for name in names:
            self.count(name)

    @contextlib.contextmanager
    def graph(self) -> Iterator[None]:
        """Have all that the block adds belong to one graph; count refused kernels, and the time."""
        groups, refusals, start = len(self.groups), len(self.refusals), time.perf_counter()
        try:
            yield
        finally:
            for refusal in self.refusals[refusals:]:
                self._count_refused(refusal)
            self.graphs += 1
            staged = sum(sum(group.seconds.values()) for group in self.groups[groups:])
            rest = time.perf_counter() - start - staged
            self.seconds["other"] = self.seconds.get("other", 0.0) + rest

    def _count_refused(self, refusal: Refusal) -> None:
        self.count(f"refused.{refusal.reason.name}")

    def refuse(self, refusal: Refusal) -> None:
        """Add a refusal after the graph that it is about; `graph` counts those of its own block."""
        self.refusals.append(refusal)
        self._count_refused(refusal)

    def mark(self) -> Report:
        """Return what the report holds now, for `withdraw` and `go_back`."""
        return replace(self, **{name: copy.copy(value) for name, value in vars(self).items()})

    def go_back(self, earlier: Report) -> None:
        """Forget everything since `earlier` but the time, as it is done again otherwise."""
        spent = self.total_seconds - earlier.total_seconds
        vars(self).update(vars(earlier.mark()))
        self.seconds["again"] = self.seconds.get("again", 0.0) + spent

    def withdraw(self, earlier: Report, detail: str) -> None:
        """Take back all that was fused since `earlier`, as those graphs are compiled without Bridge."""
        since = self.groups[len(earlier.groups) :]
        self.groups[len(earlier.groups) :] = [g.withdrawn(detail) if g.fused else g for g in since]
        for _ in filter(lambda group: group.fused, since):
            self.count("groups_fused", -1)
            self.count(f"refused.{Reason.internal_error.name}")
        del self.choices[len(earlier.choices) :], self.notes[len(earlier.notes) :]
        self.kernels_after = earlier.kernels_after + self.kernels_before - earlier.kernels_before
        self.bytes_after = earlier.bytes_after + self.bytes_before - earlier.bytes_before
        self.peak_after = self.peak_before
        self.count("graphs_withdrawn", self.graphs - earlier.graphs)

    def __str__(self) -> str:
        return _writer(self)

    def __repr__(self) -> str:
        """Return one line for a prompt: `print` shows the rest."""
        if not self.graphs:
            return "<bridge.Report: nothing was compiled; print() says why that may be>"
        graphs = f"{self.graphs} graph{'' if self.graphs == 1 else 's'}"
        groups = f"{len(self.fused)} of {len(self.groups)} groups changed"
        kernels = f"{self.kernels_before} -> {self.kernels_after} kernels"
        return f"<bridge.Report: {graphs}, {groups}, {kernels}; print() shows what was done, .details() all>"

    def _repr_html_(self) -> str:
        """Return the same for a notebook."""
        return f"<pre>{html.escape(str(self))}</pre>"

    def details(self) -> str:
        """Return all that is known of each group, with the passes' remarks."""
        if not self.graphs:
            return NOT_COMPILED
        graphs = "" if self.graphs == 1 else f" in {self.graphs} graphs"
        lines = [
            f"bridge: {len(self.fused)} of {len(self.groups)} groups fused{graphs}, {1e3 * self.total_seconds:.1f} ms"
        ]
        for group in self.groups:
            lines += _group_lines(group, self.graphs)
        lines += [f"  {line}" for line in [*self.choices, *self.notes]]
        for refusal in self.refusals:
            nodes = ", ".join(refusal.nodes) or "everything"
            lines.append(f"  {nodes}: left alone [{refusal.reason.name}] {refusal.detail}")
        return "\n".join(lines)


def _group_lines(group: GroupReport, graphs: int) -> list[str]:
    where = f"graph {group.graph} " if graphs > 1 else ""
    head = f"  {where}{group.name} ({', '.join(group.nodes)}): "
    if group.fused:
        head += f"{group.kernels_before} -> {group.kernels_after} kernels: {group.done}"
    else:
        name = group.reason.name if group.reason is not None else "none"
        head += f"not fused [{name}] {group.detail}"
    amounts = group.bytes_before, group.bytes_after, group.bytes_if_one
    before, after, one = (f"{amount / 2**20:.1f} MB" for amount in amounts)
    lines = [head, f"    moves {before} -> {after}; one kernel would move {one}"]
    lines += [f"    {decision}" for decision in group.decisions]
    lines += [f"    proven again: {line}" for line in group.certificate]
    lines += [f"    remark [{reason}] {text} at {where}" for reason, text, where in group.remarks]
    lines += [f"    for example: {example}" for example in group.counterexamples]
    stages = ", ".join(f"{stage} {1e3 * s:.1f}" for stage, s in group.seconds.items())
    return [*lines, f"    ms: {stages}"]


#: Said of a report without graphs.
NOT_COMPILED = (
    "bridge: no graph was scheduled; they came from Inductor's cache, or there were none.\n"
    "To see what was fused in them, compile anew: TORCHINDUCTOR_FORCE_DISABLE_CACHES=1"
)

_writer: Callable[[Report], str] = Report.details


def write_with(writer: Callable[[Report], str]) -> None:
    """Have this write a report as text: `import bridge` sets it, as diagnostics stand above reports."""
    global _writer
    _writer = writer


_lock = threading.Lock()
_last: Report | None = None


def publish(report: Report) -> None:
    """Make a report the one that `bridge.report()` returns."""
    global _last
    with _lock:
        _last = report


def report() -> Report | None:
    """Return the report of this process' last compilation through Bridge; None before the first."""
    with _lock:
        return _last


_bugs: list[str] = []


def note_bugs(details: Iterable[str]) -> None:
    """Keep what is known of internal errors, for `bugs`."""
    with _lock:
        _bugs.extend(details)


def bugs() -> list[str]:
    """Return the internal errors of all compilations of this process: tests and benchmarks are to end red on one."""
    with _lock:
        return list(_bugs)


_warned: set[str] = set()


def warn_once(subject: str, text: str) -> bool:
    """Warn once a process for each subject; return whether it was this time."""
    with _lock:
        if subject in _warned:
            return False
        _warned.add(subject)
    warnings.warn(text, RuntimeWarning, stacklevel=3)
    return True
