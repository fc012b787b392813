"""Changes of the graph before Inductor lowers it: what no fusion of loops can do, as it is decided by then.

Each pass is a file.  They run after all passes of Inductor's, in this order, in compilations that are Bridge's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..attempts import attempt, boundary
from ..inductor import graphs
from ..options import Options
from ..reasons import Reason
from ..report import Refusal
from .share_operands import share_operands
from .shrink_domains import shrink_domains
from .store_reread import store_reread

#: By the option that has them run; it is also what is counted in the report.
PASSES: dict[str, Callable[[Any], Iterator[str]]] = {
    "shrink_domains": shrink_domains,
    "store_reread": store_reread,
    "share_operands": share_operands,  # the last, as it has strides in the graph
}


@dataclass
class Changes:
    """What was changed in a graph: lines by pass, what ended for a node or a pass, and the seconds that all took."""

    lines: dict[str, list[str]] = field(default_factory=dict)
    faults: list[Refusal] = field(default_factory=list)
    seconds: float = 0.0


def change_graph(graph: Any, options: Options) -> None:
    """Runs the passes that the options ask for, and notes what they did for the report of the graph's schedule.

    A bug of ours ends a pass for a node, or at the least a pass: production leaves there what is as it is, strict mode
    raises.
    """
    changes, start = Changes(), time.perf_counter()
    with boundary(options.strict, changes.faults.append):
        for name in [name for name in PASSES if getattr(options, name)]:
            lines = changes.lines[name] = []
            with attempt(note=partial(_end, changes, name)):
                lines += PASSES[name](graph)
    changes.seconds = time.perf_counter() - start
    graphs.add_note(graph, changes)


def _end(changes: Changes, name: str, reason: Reason, detail: str) -> None:
    changes.faults.append(Refusal([], reason, f"{name}: {detail}"))
