"""Compare every report of a test with the code that was emitted for it, whoever asked for the compilation."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from emitted_claims import wrong_claims
from torch._inductor.graph import GraphLowering

from bridge import Report
from bridge.diagnostics.recording import Kernel
from bridge.inductor.inspection import watch_kernels
from bridge.inductor.rescheduling import current_graph, is_subgraph
from bridge.scheduling import hook


@dataclass
class Emitted:
    """Hold what became of the graphs of one report, in their order.

    codes: their wrappers; kernels: with the number of their wrapper; lost: whether a graph has no wrapper in Python.
    """

    report: Report
    codes: list[str] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    lost: bool = False

    def wrong_claims(self) -> list[str]:
        """Return the wrong claims of the report; code of a subgraph is in the wrapper of the graph around it."""
        if self.lost:
            return []
        return wrong_claims(self.report, self.codes, self.kernels if len(self.codes) == self.report.graphs else ())


@dataclass
class _Graph:
    """Follow a graph whose code is being generated: whose report it is in, and the kernels of it and its subgraphs."""

    emitted: Emitted | None = None
    kernels: list[tuple[str, list[str], str]] = field(default_factory=list)

    def begin(self, emitted: Emitted, anew: bool) -> None:
        """Set the report that a schedule belongs to.

        anew: it is the schedule of the graph itself, whose code may have been generated before and dropped.
        """
        self.emitted = emitted
        if anew:
            self.kernels.clear()

    def add(self, code: str | None) -> None:
        """Add the graph's code and kernels to what its report has, if it has a report."""
        if self.emitted is None:
            return
        if code is None:
            self.emitted.lost = True
            return
        number = len(self.emitted.codes)
        self.emitted.codes.append(code)
        self.emitted.kernels += [Kernel(*kernel, graph=number) for kernel in self.kernels]


@contextlib.contextmanager
def emitted_meanwhile() -> Iterator[list[Emitted]]:
    """Collect what is emitted in the block, for each report apart."""
    found: list[Emitted] = []
    current = threading.local()
    changed, codegen = hook._changed, GraphLowering.codegen

    def generate(graph: Any) -> Any:
        if getattr(current, "graph", None) is not None:  # of a branch or a loop's body: its code is in that around it
            return codegen(graph)
        current.graph, code = _Graph(), None
        try:
            result = codegen(graph)
            code = None if graph.cpp_wrapper or graph.fx_wrapper else result[0].value
            return result
        finally:
            current.graph.add(code)
            current.graph = None

    def change(nodes: Any, options: Any, report: Report, earlier: int) -> Any:
        schedule, graph = changed(nodes, options, report, earlier), getattr(current, "graph", None)
        if graph is not None and schedule:
            graph.begin(_of(found, report), not is_subgraph(current_graph()))
            watch_kernels(schedule, lambda *kernel: graph.kernels.append(kernel))
        return schedule

    with mock.patch.object(hook, "_changed", change), mock.patch.object(GraphLowering, "codegen", generate):
        yield found


def _of(found: list[Emitted], report: Report) -> Emitted:
    known = next((emitted for emitted in found if emitted.report is report), None)
    if known is None:
        known = Emitted(report)
        found.append(known)
    return known
