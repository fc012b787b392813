"""For `bridge bench --corpus --offline`: compile a pattern for an H100 without one, with and without Bridge."""

from __future__ import annotations

import copy
import time
from collections import Counter
from collections.abc import Callable

import torch

from ... import offline
from ...options import Options
from ...reports import GroupReport, Report
from ...scheduling import hook
from ..findings import left_apart, why
from .journal import Record
from .patterns import Corpus

#: What a compiler raises that cannot compile a pattern.
RAISED = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, RuntimeError, TypeError, ValueError,
)  # fmt: skip

#: Counters of the report that say that a step of Bridge failed.
_INTERNAL = "internal_error"


def compile_offline(corpus: Corpus, name: str, point: int = 0) -> Record:
    """Return a record of one pattern: its status, the kernels of both compilers, and why kernels stay apart."""
    start = time.perf_counter()
    record = {"pattern": name, **_compiled(corpus, name, point)}
    return {**record, "seconds": round(time.perf_counter() - start, 3)}


def _compiled(corpus: Corpus, name: str, point: int) -> Record:
    both = _Both()
    torch._dynamo.reset()
    try:
        module, inputs = corpus.outline(name, point)
        result = offline.compile_for_gpu(module.forward, inputs, compile_fx=both)
    except RAISED as failure:
        return {"status": both.culprit, "detail": _words(failure)}
    theirs, ours = result.graphs[::2], result.graphs[1::2]
    counts = [sum(len(graph.launches) for graph in graphs) for graphs in (theirs, ours)]
    record = describe(both.report, *counts)
    return {**record, "same_code": same_code([g.code for g in theirs], [g.code for g in ours])}


def same_code(theirs: list[str], ours: list[str]) -> bool:
    """Return whether both compilers generated the same; comments name files and other traces of a compilation."""
    return list(map(_without_comments, theirs)) == list(map(_without_comments, ours))


def _without_comments(code: str) -> str:
    return "\n".join(line for line in code.splitlines() if not line.lstrip().startswith("#"))


class _Both:
    """Generate code twice, first Inductor's; what comes before the lowering is done once.

    culprit: the status of the pattern if compiling it fails now.
    """

    def __init__(self) -> None:
        self.culprit = "skipped"
        self.report = Report()

    def __call__(self, gm: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable:
        from torch._inductor.compile_fx import compile_fx  # weight: Inductor

        return compile_fx(gm, inputs, inner_compile=self._generate)

    def _generate(self, gm: torch.fx.GraphModule, inputs: list[torch.Tensor], **keywords: object) -> Callable:
        from torch._guards import TracingContext  # weight: Inductor
        from torch._inductor.compile_fx import compile_fx_inner  # weight: Inductor

        with TracingContext.report_output_strides():  # of this compilation; the caller asks for the other's
            compile_fx_inner(copy.deepcopy(gm), inputs, **keywords)
        self.culprit = "crash"
        with hook.active(Options(), self.report):
            compiled = compile_fx_inner(gm, inputs, **keywords)
        self.culprit = "skipped"
        return compiled


def describe(report: Report, inductor: int, bridge: int) -> Record:
    """Return what a report says of a pattern for which so many kernels were emitted."""
    apart: list[Record] = [_group(group) for group in left_apart(report)]
    refusals = [(refusal.reason.name, refusal.detail) for refusal in report.refusals]
    reasons = Counter({name for group in apart for name, _ in group["why"]})
    reasons.update({name for name, _ in refusals} - set(reasons))
    return {
        "status": status(report, inductor, bridge),
        "detail": "; ".join(detail for name, detail in refusals if name == _INTERNAL),
        "inductor": inductor,
        "bridge": bridge,
        "claimed": [report.kernels_before, report.kernels_after],
        "reasons": sorted(reasons),
        "apart": apart,
        "refusals": refusals,
        "choices": list(report.choices),
        "counters": dict(report.counters),
        "bridge_seconds": round(report.total_seconds, 4),
    }


def _group(group: GroupReport) -> Record:
    return {
        "kernels": [group.kernels_before, group.kernels_after],
        "bytes": [group.bytes_before, group.bytes_if_one],
        "why": why(group),
    }


def status(report: Report, inductor: int, bridge: int) -> str:
    """Return the verdict of a pattern that compiles: the first of these that holds."""
    internal = any(_INTERNAL in name for name in report.counters)
    held = {
        "internal_error": internal or any(group.reason and group.reason.name == _INTERNAL for group in report.groups),
        "worse": bridge > inductor,
        "fused": bridge < inductor or bool(report.fused),
        "restructured": bool(report.choices),
        "refused": bridge > 1,
    }
    return next((name for name, holds in held.items() if holds), "same")


def _words(failure: BaseException) -> str:
    return f"{type(failure).__name__}: {str(failure)[:1500]}"
