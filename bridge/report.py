"""What the last compilation did: one entry a group, with the time of every stage."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from .groups import Refusal
from .reasons import Reason


@dataclass
class GroupReport:
    """One group of kernels.

    nodes: scheduler nodes in it; fused: whether at least one kernel of Bridge's came out;
    reason / detail: why not, where it was not; kernels_before / kernels_after: kernels of the group;
    seconds: time of each stage; remarks: what the passes said, as (reason, text, location).
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

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Adds the wall time of the block to `seconds[name]`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


@dataclass
class Report:
    """The groups of one compilation (of every graph in it) and the kernels that could not take part."""

    groups: list[GroupReport] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def fused(self) -> list[GroupReport]:
        return [g for g in self.groups if g.fused]

    @property
    def total_seconds(self) -> float:
        """Time of all stages of Bridge's in the compilation."""
        return sum(self.seconds.values()) + sum(sum(g.seconds.values()) for g in self.groups)

    def count(self, name: str, amount: int = 1) -> None:
        self.counters[name] = self.counters.get(name, 0) + amount

    def __str__(self) -> str:
        lines = [f"bridge: {len(self.fused)} of {len(self.groups)} groups fused, {1e3 * self.total_seconds:.1f} ms"]
        for group in self.groups:
            lines += _group_lines(group)
        for refusal in self.refusals:
            lines.append(f"  {', '.join(refusal.nodes)}: left alone [{refusal.reason.name}] {refusal.detail}")
        return "\n".join(lines)


def _group_lines(group: GroupReport) -> list[str]:
    head = f"  {group.name} ({', '.join(group.nodes)}): "
    if group.fused:
        head += f"fused, {group.kernels_before} -> {group.kernels_after} kernels"
    else:
        name = group.reason.name if group.reason is not None else "none"
        head += f"not fused [{name}] {group.detail}"
    lines = [head]
    lines += [f"    {decision}" for decision in group.decisions]
    lines += [f"    remark [{reason}] {text} at {where}" for reason, text, where in group.remarks]
    stages = ", ".join(f"{stage} {1e3 * s:.1f}" for stage, s in group.seconds.items())
    return [*lines, f"    ms: {stages}"]


_lock = threading.Lock()
_last: Report | None = None


def publish(report: Report) -> None:
    """Makes a report the one that `bridge.report()` returns."""
    global _last
    with _lock:
        _last = report


def report() -> Report | None:
    """The report of this process' last compilation through Bridge; None before the first."""
    with _lock:
        return _last
