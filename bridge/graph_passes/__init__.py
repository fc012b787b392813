"""Changes of the graph before Inductor lowers it: what no fusion of loops can do, as it is decided by then.

Each pass is a file.  They run after all passes of Inductor's, in this order, in compilations that are Bridge's.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from torch.fx import Graph

from ..inductor import graphs, trial
from ..inductor.held_inputs import keep_held
from ..inductor.memory import SMALLEST_BLOCK
from ..options import Options
from ..reasons import Reason, Refusal
from ..support.error_boundary import attempt, boundary
from .compared_sums import mark_compared_sums
from .concatenate_slices import concatenate_slices
from .contiguous_rows import contiguous_rows
from .reduce_pieces import reduce_pieces
from .regions import Region, changed_regions
from .saved_values import SavedValue, saved_values
from .scatter_by_comparison import scatter_by_comparison
from .share_operands import share_operands
from .shrink_domains import shrink_domains
from .store_reread import store_reread

#: By the option that has them run; it is also what is counted in the report.
PASSES: dict[str, Callable[[Graph], Iterator[str]]] = {
    "shrink_domains": shrink_domains,
    "concatenate_slices": concatenate_slices,
    "reduce_pieces": reduce_pieces,  # of concatenations that the pass before it makes, too
    "scatter_by_comparison": scatter_by_comparison,
    "contiguous_rows": contiguous_rows,
    "store_reread": store_reread,  # it asks which values are contiguous
    "share_operands": share_operands,  # the last, as it has strides in the graph
}

#: What is worth no kernel more.  The others run after them; what they store may be a kernel, and spares traffic.
WORTH_NO_KERNEL = {"concatenate_slices", "reduce_pieces", "shrink_domains"}


@dataclass
class Changes:
    """Hold what was changed in a graph.

    lines: what was done, by pass; taken_back: what was not, as it needs memory or kernels; faults: what ended for a
    node, a pass or a trial; saved: values for the backward that can be computed again; seconds: that all took.
    """

    lines: dict[str, list[str]] = field(default_factory=dict)
    taken_back: list[str] = field(default_factory=list)
    faults: list[Refusal] = field(default_factory=list)
    saved: list[SavedValue] = field(default_factory=list)
    seconds: float = 0.0

    def add_fault(self, fault: Refusal) -> None:
        """Add what ended, once: a pass that is run again ends in the same place."""
        if fault not in self.faults:
            self.faults.append(fault)


def change_graph(graph: Graph, options: Options, inference: bool) -> bool:
    """Run the passes that the options ask for, and return whether one did something, or came to an end before.

    What they did is noted for the report of the graph's schedule.

    What would raise Inductor's estimate of the graph's peak of memory is taken back, and what is worth no kernel more
    where that would make one.
    A bug of ours ends a pass for a node, or at the least a pass: production leaves there what is as it is, strict mode
    raises.
    """
    changes, start, owner = Changes(), time.perf_counter(), graph.owning_module
    chosen = [name for name in PASSES if getattr(options, name)]
    with boundary(options.strict, changes.add_fault), attempt(note=partial(_end, changes, "what is held")):
        keep_held(graph)
    with boundary(options.strict, changes.add_fault), attempt(note=partial(_end, changes, "a trial")):
        _run_on_trial(chosen, graph, changes, inference)
    if not inference:
        with boundary(options.strict, changes.add_fault), attempt(note=partial(_end, changes, "what is saved")):
            mark_compared_sums(owner.graph)
            changes.saved += saved_values(owner.graph)
    changes.seconds = time.perf_counter() - start
    graphs.add_note(owner.graph, changes)
    return any([*changes.lines.values(), changes.taken_back, changes.faults])


def _end(changes: Changes, name: str, reason: Reason, detail: str) -> None:
    changes.add_fault(Refusal([], reason, f"{name}: {detail}"))


def _run(names: list[str], graph: Graph, changes: Changes) -> None:
    for name in names:
        lines = changes.lines[name] = []
        with attempt(note=partial(_end, changes, name)):
            lines += PASSES[name](graph)


def _run_on_trial(names: list[str], graph: Graph, changes: Changes, inference: bool) -> None:
    """Run passes; where one makes it worse, or a trial fails, a copy of the graph as it was is put in its place."""
    owner, given = graph.owning_module, copy.deepcopy(graph) if names else graph
    found = Changes(faults=changes.faults)
    _run(names, graph, found)
    if any(found.lines.values()):
        owner.graph = before = trial.in_own_module(given, graph)
        trials = trial.Trials(inference)
        owner.graph = kept = _no_worse(graph, before, found, trials)
        trials.serve(kept)
    changes.lines |= found.lines
    changes.taken_back += found.taken_back


def _no_worse(graph: Graph, before: Graph, changes: Changes, trials: trial.Trials) -> Graph:
    """Return a graph that was changed; where that made it worse, with the passes alone that did not."""
    names = [name for name, lines in changes.lines.items() if lines]
    parts = changed_regions(before, graph)
    if parts is not None and not _worse_in_parts(names, parts, trials):
        return graph
    most = trials.estimate(before)
    if _worse(names, trials.estimate(graph), most):
        return _one_by_one(before, changes, most, trials)
    return graph


def _worse_in_parts(names: list[str], parts: list[Region], trials: trial.Trials) -> bool:
    """Return True if passes may have made a graph worse: a part of it needs more memory, or all together more kernels.

    A part that has changes of others in it spares the kernels that they spare: it makes up for none.
    """
    more = 0
    for part in parts:
        estimate, most = trials.estimate(part.after), trials.estimate(part.before)
        if _needs_more(estimate, most):
            return True
        kernels = estimate.kernels - most.kernels
        more += kernels * part.times if kernels > 0 or part.apart else 0
    return more > 0 and not WORTH_NO_KERNEL.isdisjoint(names)


def _needs_more(estimate: trial.Estimate, most: trial.Estimate) -> bool:
    """Return True if a graph needs more memory by a block of the allocator's: what is less is no memory more."""
    return estimate.peak - most.peak >= SMALLEST_BLOCK


def _worse(names: list[str], estimate: trial.Estimate, most: trial.Estimate) -> str:
    """Return what a graph would take beyond what it may after passes; nothing where that is all right."""
    if _needs_more(estimate, most):
        return f"{estimate.peak - most.peak:,} bytes of memory"
    more = estimate.kernels - most.kernels if WORTH_NO_KERNEL.intersection(names) else 0
    return f"{more} kernels" if more > 0 else ""


def _one_by_one(before: Graph, changes: Changes, most: trial.Estimate, trials: trial.Trials) -> Graph:
    """Return the graph with the passes that do not make it worse, each seen after those that stay."""
    kept = before
    for name in [name for name, lines in changes.lines.items() if lines]:
        changed = trial.copied(kept)
        _run([name], changed, changes)
        worse = _worse([name], trials.estimate(changed), most)
        if not worse:
            kept = changed
        else:
            changes.lines[name] = []
            changes.taken_back.append(f"{name}: the graph would need {worse} more")
    return kept
