"""Changes of the graph before Inductor lowers it: what no fusion of loops can do, as it is decided by then.

Each pass is a file.  They run after all passes of Inductor's, in this order, in compilations that are Bridge's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..attempts import BUGS
from ..inductor import graphs, trial
from ..options import Options
from .share_operands import share_operands
from .shrink_domains import shrink_domains
from .store_reread import store_reread

#: By the option that has them run; it is also what is counted in the report.
PASSES: dict[str, Callable[[Any], Iterator[str]]] = {
    "shrink_domains": shrink_domains,
    "store_reread": store_reread,
    "share_operands": share_operands,  # the last, as it has strides in the graph
}

#: What leaves each value where it was in the graph, and computes less of some: no kernel needs more memory for it.
NEEDS_NO_TRIAL = {"shrink_domains"}


@dataclass
class Changes:
    """What was changed in a graph: lines by pass, what was taken back, what ended a pass, the seconds that all took."""

    lines: dict[str, list[str]] = field(default_factory=dict)
    taken_back: list[str] = field(default_factory=list)
    fault: str = ""
    seconds: float = 0.0


def change_graph(graph: Any, options: Options, inference: bool) -> None:
    """Runs the passes that the options ask for, and notes what they did for the report of the graph's schedule.

    What would raise Inductor's estimate of the graph's peak of memory is taken back.  A bug of ours ends a pass:
    production leaves the rest of the graph as it is, strict mode raises.
    """
    changes, start, owner = Changes(), time.perf_counter(), graph.owning_module
    names = [name for name in PASSES if getattr(options, name)]
    first, second = ([name for name in names if (name in NEEDS_NO_TRIAL) is free] for free in (True, False))
    _run(first, graph, changes, options.strict)
    try:
        _run_within_peak(second, graph, changes, options.strict, inference)
    except BUGS as bug:
        if options.strict:
            raise
        changes.fault = f"a trial: {type(bug).__name__}: {bug}"
    changes.seconds = time.perf_counter() - start
    graphs.add_note(owner.graph, changes)


def _run_within_peak(names: list[str], graph: Any, changes: Changes, strict: bool, inference: bool) -> None:
    """Runs passes; where one raises the peak, or a trial fails, a copy of the graph as it was is put in its place."""
    owner, before, found = graph.owning_module, trial.copied(graph) if names else graph, Changes()
    _run(names, graph, found, strict)
    if any(found.lines.values()):
        owner.graph, kept = before, graph
        most = trial.estimated_peak(before, inference)
        if trial.estimated_peak(graph, inference) > most:
            kept = _one_by_one(before, found, most, inference)
        owner.graph = kept
    changes.lines |= found.lines
    changes.taken_back += found.taken_back
    changes.fault = changes.fault or found.fault


def _one_by_one(before: Any, changes: Changes, most: int, inference: bool) -> Any:
    """The graph with the passes that do not raise its peak, each seen after those that stay; most: bytes."""
    kept = before
    for name in [name for name, lines in changes.lines.items() if lines]:
        changed = trial.copied(kept)
        _run([name], changed, changes, strict=False)
        above = trial.estimated_peak(changed, inference) - most
        if above <= 0:
            kept = changed
        else:
            changes.lines[name] = []
            changes.taken_back.append(f"{name}: the graph would need {above:,} bytes of memory more")
    return kept


def _run(names: list[str], graph: Any, changes: Changes, strict: bool) -> None:
    for name in names:
        lines = changes.lines[name] = []
        try:
            lines += PASSES[name](graph)
        except BUGS as bug:
            if strict:
                raise
            changes.fault = f"{name}: {type(bug).__name__}: {bug}"
