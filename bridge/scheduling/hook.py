"""Run the passes that Inductor calls, over the graph and after its own fusion, where compilations are Bridge's."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .. import inductor
from ..affine.mlir_runtime import mlir_version
from ..graph_passes import Changes, change_graph
from ..inductor import graphs, reuse
from ..inductor import inspection as generated
from ..inductor.cpp import keep_each_row
from ..inductor.memory import estimated_peak
from ..lowering.triton.codegen import draw_alike
from ..options import Options
from ..reasons import TRAINING_HINT, Reason, Refusal
from ..reports import FAULTS, Report, note_bugs, publish, warn_once
from ..support.error_boundary import attempt, boundary, describe, is_faulty, try_step, without
from ..support.recorder import recorder
from .fuse import fuse_schedule
from .recomputation import keep_saved, note_recomputations
from .regeneration import generate_again
from .totals import add_names, add_totals

if TYPE_CHECKING:
    import torch

    from ..inductor.hooks import InstalledPass
    from ..inductor.protocols import Schedule


@dataclass(frozen=True)
class Scope:
    """Hold compilations that are Bridge's: their options, and their report (None: each graph has its own)."""

    options: Options
    report: Report | None


#: The compilation that runs in this context.  The pass is visible to other threads, which compile without Bridge.
_scope: ContextVar[Scope | None] = ContextVar("bridge_scope", default=None)
#: The report of a function of which Dynamo has compiled a part, up to a graph break, and that part's options.
_unfinished: ContextVar[Scope | None] = ContextVar("bridge_unfinished", default=None)

#: Whether a graph is scheduled again without Bridge, as no code could be generated with it.
_without_bridge: ContextVar[bool] = ContextVar("bridge_without", default=False)

#: Whether Bridge has had a part in the graph that was begun last in this context.
_took_part: ContextVar[bool] = ContextVar("bridge_took_part", default=False)

#: The report of what is compiled in this context, in the place of its scope's.
_other_report: ContextVar[Report | None] = ContextVar("bridge_other_report", default=None)

_installed: tuple[Scope, contextlib.ExitStack] | None = None
_install_lock = threading.Lock()


def current() -> Scope | None:
    """Return the scope that a compilation in this context belongs to; None where it is plain Inductor's."""
    if _without_bridge.get():
        return None
    scope, other = _scope.get() or (_installed[0] if _installed else None), _other_report.get()
    return Scope(scope.options, other) if scope is not None and other is not None else scope


@contextlib.contextmanager
def reporting_to(report: Report) -> Iterator[None]:
    """Have what the block compiles stand in this report, whatever its scope has."""
    token = _other_report.set(report)
    try:
        yield
    finally:
        _other_report.reset(token)


def is_withheld() -> bool:
    """Return True where a graph is compiled without Bridge, as with it there was no code."""
    return _without_bridge.get()


@contextlib.contextmanager
def active(options: Options, report: Report) -> Iterator[Report]:
    """Have the compilations of this context, until the end of the block, go through Bridge into `report`."""
    token = _scope.set(Scope(options, report))
    _took_part.set(False)
    try:
        with inductor.hooked(_graph_pass()), inductor.hooked(_scheduler_pass()):
            yield report
    finally:
        _scope.reset(token)
        publish(report)


def took_part() -> bool:
    """Return False for an error of the graph that was begun last if Inductor alone has it: nothing was changed yet."""
    return _took_part.get()


def supported(report: Report) -> bool:
    """Return False, with a warning and the reason in the report, where Bridge does not work with this torch."""
    obstacle = inductor.torch_obstacle()
    if obstacle is None:
        return True
    with report.graph():
        _leave([], report, Reason.torch_version, obstacle)
    _tell(report, Counter())
    return False


def withdraw(report: Report, earlier: Report, detail: str) -> None:
    """Tell, and count, that graphs which could not be compiled with Bridge since `earlier` are Inductor's own."""
    before = Counter(report.counters)
    report.withdraw(earlier, detail)
    report.leave([], Reason.internal_error, detail)
    _tell(report, before)


def report_for(options: Options, unfinished: bool) -> Report:
    """Return the report of a compile call: the one before's, where that ended in a graph break.

    unfinished: whether this one does.
    """
    last = _unfinished.get()
    report = last.report if last is not None and last.report is not None and last.options == options else Report()
    _unfinished.set(Scope(options, report) if unfinished else None)
    return report


def install(options: Options) -> None:
    """Have every compilation of the process go through Bridge; replace an earlier installation."""
    global _installed
    uninstall()
    with _install_lock, contextlib.ExitStack() as stack:
        stack.enter_context(inductor.hooked(_graph_pass()))
        stack.enter_context(inductor.hooked(_scheduler_pass()))
        _installed = Scope(options, None), stack.pop_all()


def uninstall() -> None:
    """Undo `install`; do nothing without one."""
    global _installed
    with _install_lock:
        last, _installed = _installed, None
    if last is not None:
        last[1].close()


@functools.cache
def _scheduler_pass() -> InstalledPass:
    return inductor.scheduler_pass(_AfterFusion())


@functools.cache
def _graph_pass() -> InstalledPass:
    return inductor.graph_pass(_BeforeLowering())


class _Pass:
    """Answer where Inductor calls; its key is part of that of Inductor's caches."""

    def active(self) -> bool:
        return current() is not None

    def key(self) -> tuple[str, ...] | None:
        """Return None (no caching) for a compilation that is to be dumped or explained: a hit would show nothing."""
        scope = current()
        assert scope is not None, "called where not active"
        if scope.options.dump_dir is not None or recorder().is_recording():
            return None
        with boundary(scope.options.strict, _tell_of_key):
            return try_step(partial(identity, scope.options), None)


def identity(options: Options) -> tuple[str, ...]:
    """Return what stands in the keys of caches for Bridge, its native library and the options."""
    plugins = tuple(content_hash([Path(path)]) for path in options.plugins)
    return ("bridge", implementation_hash(), mlir_version() or "no MLIR", repr(options.deciding()), *plugins)


def _tell_of_key(refusal: Refusal) -> None:
    """Count once what Inductor's caches ask for several times: without a key, they are not used."""
    if warn_once("key", f"bridge has no key for Inductor's caches: {refusal.detail}"):
        inductor.add_counters({f"refused.{refusal.reason.name}": 1})
        note_bugs([refusal.detail])


class _AfterFusion(_Pass):
    def __call__(self, nodes: Schedule) -> Schedule:
        scope = current()
        assert scope is not None, "called where not active"
        return run_after_fusion(nodes, scope.options, scope.report or Report())


class _BeforeLowering(_Pass):
    """Has no report at hand: what it changes stands in that of the graph's schedule."""

    def __call__(self, graph: torch.fx.Graph, inference: bool) -> None:
        run_before_lowering(graph, inference)


def run_before_lowering(graph: torch.fx.Graph, inference: bool) -> None:
    """Change a graph of the compilation that runs in this context; inference: whether it is for that."""
    scope = current()
    assert scope is not None, "called where not active"
    took_part = _took_part.get()
    _took_part.set(True)  # while it goes on, an error is Bridge's
    left = inductor.unkept_promise() is not None or graphs.apart_by_user(graph)
    if (inference or scope.options.training) and not left:
        with recorder().timed("bridge.graph_passes"):
            took_part = change_graph(graph, scope.options, inference) or took_part
    _took_part.set(took_part)


def run_after_fusion(nodes: Schedule, options: Options, report: Report) -> Schedule:
    """Return the schedule after Bridge; errors of the environment leave it as it was, with a recorded reason.

    Raises a bug of ours in strict mode.
    """
    _took_part.set(True)
    before, earlier, mark = Counter(report.counters), len(report.groups), report.mark()
    inductors = sum(map(generated.is_generated, nodes))  # a kernel that is taken apart leaves others that are generated
    with boundary(options.strict, report.adder()):
        try:
            changed = _changed(nodes, options, report, earlier)
            report.kernels_before += inductors
            report.kernels_after += sum(map(generated.is_generated, changed))
            if not options.strict:
                try_step(partial(generate_again, partial(_leave_faulty, report, mark)), None)
            return changed
        finally:
            _tell(report, before)


@contextlib.contextmanager
def _leave_faulty(report: Report, mark: Report, error: Exception, operations: set[str]) -> Iterator[None]:
    """Have the block schedule a graph again: without the fusion at fault, or without Bridge if it is not known.

    mark: the report before the graph; operations: of the kernel for which there was no code.
    Raises the error where Bridge has changed nothing.
    """
    detail = f"no code for its kernels: {describe(error)}"
    if inductor.is_dynamos_own(error) or (report.fused == mark.fused and report.choices == mark.choices):
        raise error
    ours = {name for group in report.groups[len(mark.groups) :] if group.fused for name in group.nodes}
    if not operations & ours or is_faulty(operations):
        with withheld():
            yield
        withdraw(report, mark, detail)
        return
    before = Counter(report.counters)
    report.go_back(mark)
    _add_counts(report, before)
    with without(operations, detail):
        yield


@contextlib.contextmanager
def withheld() -> Iterator[None]:
    """Compile the block without Bridge."""
    token = _without_bridge.set(True)
    try:
        yield
    finally:
        _without_bridge.reset(token)


def _changed(nodes: Schedule, options: Options, report: Report, earlier: int) -> Schedule:
    """Return the schedule after Bridge, as a graph of the report; earlier: groups of the report's graphs before."""
    with report.graph(), recorder().timed("bridge"):
        notes: list[Changes] = try_step(graphs.take_notes, [])
        restructured = try_step(partial(_report_changes, report, notes), False)
        # Of the loops as they are: kernels that become one get others.
        peak = try_step(partial(estimated_peak, nodes), 0)
        changed = _transform(nodes, options, report)
        if restructured or changed != nodes:
            try_step(reuse.keep_below_peak, None)
            try_step(partial(reuse.keep_pieces, changed), None)
        try_step(partial(keep_each_row, changed), None)
        try_step(partial(add_totals, report, nodes, changed, peak, earlier), None)
        try_step(partial(add_names, report, nodes), None)
        try_step(partial(note_recomputations, report, changed), None)
        try_step(partial(keep_saved, report, [value for note in notes for value in note.saved], changed), None)
        with attempt():
            recorder().finish_graph(changed, report, earlier)
    return changed


def _report_changes(report: Report, notes: list[Changes]) -> bool:
    """Report what the passes over the graph did; return whether they changed it."""
    earlier = len(report.choices)
    for changes in notes:
        for name, lines in changes.lines.items():
            report.choices += lines
            if lines:
                report.count(name, len(lines))
        report.refusals += [Refusal([], Reason.not_profitable, line) for line in changes.taken_back]
        report.refusals += changes.faults
        report.seconds["graph_passes"] = report.seconds.get("graph_passes", 0.0) + changes.seconds
    return len(report.choices) > earlier


def _transform(nodes: Schedule, options: Options, report: Report) -> Schedule:
    if not inductor.is_inference_graph() and not options.training:
        warn_once("training", f"bridge leaves a graph as Inductor makes it: {TRAINING_HINT}")
        return _leave(nodes, report, Reason.training_graph, TRAINING_HINT)
    # Whatever becomes of the graph: those of its other half, forward or backward, draw so, too.
    try_step(partial(draw_alike, nodes), None)
    promise = inductor.unkept_promise()
    if promise is not None:
        return _leave(nodes, report, Reason.not_liftable, promise)
    apart = inductor.apart_by_user(nodes)
    if apart is not None:
        return _leave(nodes, report, Reason.different_device, apart)
    # No step of it that changes something ends it.
    return try_step(partial(fuse_schedule, nodes, options, report), nodes, *(n.get_name() for n in nodes))


def _leave(nodes: Schedule, report: Report, reason: Reason, detail: str) -> Schedule:
    report.refusals.append(Refusal([n.get_name() for n in nodes], reason, detail))
    return nodes


def _tell(report: Report, before: Counter) -> None:
    """Publish a report: to `bridge.report()`, to Dynamo's counters and, for a fault, as a warning."""
    with attempt(note=report.leave_all):
        recorder().tell(report)
    added = _add_counts(report, before)
    publish(report)
    count = added.get(f"refused.{Reason.internal_error.name}", 0)
    details = [detail for reason, detail in report.reasons() if reason is Reason.internal_error]
    note_bugs(details[len(details) - count :] if count <= len(details) else [*details, "of no known cause"])
    for reason, detail in report.reasons():
        if reason in FAULTS:
            warn_once(reason.name, f"bridge leaves the code as Inductor makes it: [{reason.name}] {detail}")


def _add_counts(report: Report, before: Counter) -> dict[str, int]:
    """Add to Dynamo's counters what a report has counted since `before`, and return it.

    Counts of what was withdrawn go down, which a difference of Counters would leave out.
    """
    names = {*before, *report.counters}
    added = {name: report.counters.get(name, 0) - before[name] for name in names}
    added = {name: count for name, count in added.items() if count}
    inductor.add_counters(added)
    return added


#: Parts of the package that no compilation depends on.
_NOT_HASHED = {"__pycache__", "bench", "bin", "commands", "docs", "examples", "offline"}


@functools.cache
def implementation_hash() -> str:
    """Return a hash of all in this package that decides what a compilation gives: sources and plug-in, by content."""
    return content_hash(implementation_files())


def content_hash(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{path.name} {path.stat().st_size} ".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def implementation_files() -> list[Path]:
    files = []
    # A source tree has links to folders in it, which Path.rglob does not follow.
    for folder, folders, names in os.walk(Path(__file__).parents[1], followlinks=True):
        folders[:] = sorted(set(folders) - _NOT_HASHED)
        files += [Path(folder, name) for name in sorted(names) if name.endswith((".py", ".so"))]
    return files
