"""The passes that Inductor calls, over the graph and after its own fusion, and whose compilations they take part in."""

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
from pathlib import Path
from typing import Any

from . import inductor, torch_logging
from .explanations import recording
from .fuse import fuse_schedule
from .graph_passes import change_graph
from .groups import Refusal
from .inductor import graphs
from .inductor import recording as generated
from .mlir_runtime import mlir_version
from .options import Options
from .reasons import InvariantError, Reason, Unsupported
from .report import FAULTS, GroupReport, Report, publish, warn_once


@dataclass(frozen=True)
class Scope:
    """Compilations that are Bridge's: their options, and their report (None: each graph has its own)."""

    options: Options
    report: Report | None


#: The compilation that runs in this context.  The pass is visible to other threads, which compile without Bridge.
_scope: ContextVar[Scope | None] = ContextVar("bridge_scope", default=None)
#: The report of a function of which Dynamo has compiled a part, up to a graph break, and that part's options.
_unfinished: ContextVar[Scope | None] = ContextVar("bridge_unfinished", default=None)

_installed: tuple[Scope, contextlib.ExitStack] | None = None
_install_lock = threading.Lock()


def current() -> Scope | None:
    """The scope that a compilation in this context belongs to; None where it is plain Inductor's."""
    return _scope.get() or (_installed[0] if _installed else None)


@contextlib.contextmanager
def active(options: Options, report: Report) -> Iterator[Report]:
    """Has the compilations of this context, until the end of the block, go through Bridge into `report`."""
    token = _scope.set(Scope(options, report))
    try:
        with inductor.hooked(_graph_pass()), inductor.hooked(_scheduler_pass()):
            yield report
    finally:
        _scope.reset(token)
        publish(report)


def supported(report: Report) -> bool:
    """False, with a warning and the reason in the report, where Bridge does not know this torch."""
    if inductor.torch_supported():
        return True
    oldest, too_new = (".".join(map(str, v)) for v in inductor.TORCH_VERSIONS)
    with report.graph():
        _leave([], report, Reason.torch_version, f"bridge needs torch >= {oldest}, < {too_new}")
    _tell(report, Counter())
    return False


def withdraw(report: Report, earlier: Report, error: Exception) -> bool:
    """Tells that graphs whose kernels had no code are Inductor's own; False where Bridge changed none of them."""
    before, detail = Counter(report.counters), f"no code for its kernels: {error}"
    if not report.withdraw(earlier, detail):
        return False
    report.refuse(Refusal([], Reason.internal_error, detail))
    _tell(report, before)
    return True


def report_for(options: Options, unfinished: bool) -> Report:
    """The report of a compile call: the one before's, where that ended in a graph break.

    unfinished: whether this one does.
    """
    last = _unfinished.get()
    report = last.report if last is not None and last.report is not None and last.options == options else Report()
    _unfinished.set(Scope(options, report) if unfinished else None)
    return report


def install(options: Options) -> None:
    """Has every compilation of the process go through Bridge; replaces an earlier installation."""
    global _installed
    uninstall()
    with _install_lock, contextlib.ExitStack() as stack:
        stack.enter_context(inductor.hooked(_graph_pass()))
        stack.enter_context(inductor.hooked(_scheduler_pass()))
        _installed = Scope(options, None), stack.pop_all()


def uninstall() -> None:
    """Undoes `install`; does nothing without one."""
    global _installed
    with _install_lock:
        last, _installed = _installed, None
    if last is not None:
        last[1].close()


@functools.cache
def _scheduler_pass() -> Any:
    return inductor.scheduler_pass(_AfterFusion())


@functools.cache
def _graph_pass() -> Any:
    return inductor.graph_pass(_BeforeLowering())


class _Pass:
    """What Inductor calls; its key is part of that of Inductor's caches."""

    def active(self) -> bool:
        return current() is not None

    def key(self) -> tuple[str, ...] | None:
        """None (no caching) for a compilation that is to be dumped or explained: a hit would show nothing."""
        scope = current()
        assert scope is not None, "called where not active"
        if scope.options.dump_dir is not None or recording.current() is not None:
            return None
        chosen = repr(scope.options.deciding())
        plugins = tuple(content_hash([Path(path)]) for path in scope.options.plugins)
        return ("bridge", implementation_hash(), mlir_version() or "no MLIR", chosen, *plugins)


class _AfterFusion(_Pass):
    def __call__(self, nodes: list[Any]) -> list[Any]:
        scope = current()
        assert scope is not None, "called where not active"
        return run_after_fusion(nodes, scope.options, scope.report or Report())


class _BeforeLowering(_Pass):
    """Has no report at hand: what it changes stands in that of the graph's schedule."""

    def __call__(self, graph: Any, inference: bool) -> None:
        scope = current()
        assert scope is not None, "called where not active"
        if inference or scope.options.training:
            with torch_logging.timed("bridge.graph_passes"):
                change_graph(graph, scope.options)


def run_after_fusion(nodes: list[Any], options: Options, report: Report) -> list[Any]:
    """The schedule after Bridge; errors of the environment leave it as it was, with a recorded reason.

    Raises InvariantError in strict mode.
    """
    before, earlier = Counter(report.counters), len(report.groups)
    report.kernels_before += sum(map(generated.is_generated, nodes))
    try:
        with report.graph(), torch_logging.timed("bridge"):
            _report_changes(report)
            changed = _transform(nodes, options, report)
        report.kernels_after += sum(map(generated.is_generated, changed))
        recording.finish_graph(changed, report, earlier)
        return changed
    finally:
        _tell(report, before)


def _report_changes(report: Report) -> None:
    """What the passes over the graph did."""
    for changes in graphs.take_notes():
        for name, lines in changes.lines.items():
            report.choices += lines
            if lines:
                report.count(name, len(lines))
        if changes.fault:
            report.refusals.append(Refusal([], Reason.internal_error, changes.fault))
        report.seconds["graph_passes"] = report.seconds.get("graph_passes", 0.0) + changes.seconds


def _transform(nodes: list[Any], options: Options, report: Report) -> list[Any]:
    if not inductor.is_inference_graph() and not options.training:
        return _leave(nodes, report, Reason.training_graph, "a training graph; option training=True allows it")
    try:
        return fuse_schedule(nodes, options, report)
    except Unsupported as refusal:
        return _leave(nodes, report, refusal.reason, refusal.detail)
    except InvariantError as broken:
        if options.strict:
            raise
        return _leave(nodes, report, Reason.internal_error, str(broken))


def _leave(nodes: list[Any], report: Report, reason: Reason, detail: str) -> list[Any]:
    report.refusals.append(Refusal([n.get_name() for n in nodes], reason, detail))
    return nodes


def _tell(report: Report, before: Counter) -> None:
    """Publishes a report: to `bridge.report()`, to Dynamo's counters and, for a fault, as a warning."""
    # Counts of what was withdrawn go down, which a difference of Counters would leave out.
    changed = {name: count for name, count in report.counters.items() if count != before[name]}
    inductor.add_counters({name: count - before[name] for name, count in changed.items()})
    publish(report)
    torch_logging.tell(report)
    refused: list[GroupReport | Refusal] = [*report.groups, *report.refusals]
    for entry in refused:
        if entry.reason is not None and entry.reason in FAULTS:
            detail = f"[{entry.reason.name}] {entry.detail}"
            warn_once(entry.reason.name, f"bridge leaves the code as Inductor makes it: {detail}")


#: Parts of the package that no compilation depends on.
_NOT_HASHED = {"__pycache__", "bench", "bin", "commands", "docs", "examples", "offline"}


@functools.cache
def implementation_hash() -> str:
    """Everything of this package that decides what a compilation gives: sources and plug-in, by content."""
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
    for folder, folders, names in os.walk(Path(__file__).parent, followlinks=True):
        folders[:] = sorted(set(folders) - _NOT_HASHED)
        files += [Path(folder, name) for name in sorted(names) if name.endswith((".py", ".so"))]
    return files
