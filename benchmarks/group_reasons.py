"""Print what a recording says of each group of kernels, line by line."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.diagnostics.recording import Recording


def reasons(recording: Recording) -> Iterator[str]:
    """Yield what became of each group, and what was refused."""
    for report in recording.reports:
        for group in report.groups:
            state = f"{group.kernels_before} -> {group.kernels_after} kernels"
            why = f"[{group.reason.name}] {group.detail}" if group.reason else ""
            yield f"{state}, {', '.join(group.nodes)}: {why}"
            yield from (f"    [{reason.name}] {detail}" for reason, detail in [*group.apart, *group.own_launches])
        yield from (f"{r.nodes} [{r.reason.name}] {r.detail}" for r in report.refusals)
