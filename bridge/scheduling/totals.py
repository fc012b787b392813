"""Add to a report what it says of a whole graph: bytes, the peak of memory, and the user's names for its nodes."""

from __future__ import annotations

from .. import inductor
from ..inductor import inspection
from ..inductor.memory import estimated_peak
from ..inductor.protocols import Kernel, Schedule
from ..lowering.triton.profitability import traffic
from ..reports import NodeName, Report


def add_totals(report: Report, before: Schedule, after: Schedule, peak: int, earlier: int) -> None:
    """Add the totals of a graph to its report, whose groups begin at number `earlier`; both schedules are final.

    peak: of memory, in bytes, estimated before anything was fused: the loops of `before` may be others now.
    Kernels of no group are as they were, and move what they moved.
    """
    groups = report.groups[earlier:]
    grouped = {name for group in groups for name in group.nodes}
    rest = traffic([inductor.bytes_touched(part) for kernel in before for part in _ungrouped(kernel, grouped)])
    report.bytes_before += rest + sum(group.bytes_before for group in groups)
    report.bytes_after += rest + sum(group.bytes_after for group in groups)
    report.library_calls += sum(map(inspection.is_library_call, before))
    report.device = inspection.device_name(before) or report.device
    report.peak_before = max(report.peak_before, peak)
    report.peak_after = max(report.peak_after, peak if before == after else estimated_peak(after))


def add_names(report: Report, schedule: Schedule) -> None:
    """Add what the user calls the nodes of a graph, which is the report's last."""
    for kernel in schedule:
        for node in inductor.loop_nodes(kernel):
            report.names[report.graphs, node.get_name()] = NodeName(*inspection.node_name(node))


def _ungrouped(kernel: Kernel, grouped: set[str]) -> list[Kernel]:
    if not inspection.is_generated(kernel) or inductor.operation_names(kernel) & grouped:
        return []
    return [kernel]
