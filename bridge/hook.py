"""The scheduler pass that Inductor calls after its own fusion."""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from . import inductor_compat as inductor
from .config import Options
from .fuse import fuse_schedule
from .reasons import Reason
from .groups import Refusal
from .report import Report, publish

#: Options of the compilation that runs in this context; None outside of Bridge's compilations.  Torch 2.11
#: keeps its configuration for the whole process, so the pass itself must know whose compilation it is in.
_active: ContextVar[Options | None] = ContextVar("bridge_options", default=None)
_report: ContextVar[Report | None] = ContextVar("bridge_report", default=None)


@contextlib.contextmanager
def active(options: Options) -> Iterator[Report]:
    """Marks the compilations inside as Bridge's and collects their report."""
    report = Report()
    tokens = _active.set(options), _report.set(report)
    try:
        yield report
    finally:
        _active.reset(tokens[0])
        _report.reset(tokens[1])
        publish(report)


def run_after_fusion(nodes: list[Any], options: Options) -> list[Any]:
    """The schedule after Bridge; errors of the environment leave it as it was, with a recorded reason."""
    report = _report.get() or Report()
    if not inductor.is_inference_graph() and not options.training:
        detail = "a training graph; option training=True allows it"
        report.refusals.append(Refusal([n.get_name() for n in nodes], Reason.training_graph, detail))
        return nodes
    result = fuse_schedule(nodes, options, report)
    publish(report)
    return result


@functools.cache
def implementation_hash() -> str:
    """Version of everything that decides what a compilation gives: sources, plug-in, MLIR's release."""
    digest = hashlib.sha256()
    root = Path(__file__).parent
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.so")]):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def make_pass(options: Options, previous: Callable | None, always: bool) -> Any:
    """The hook object; `previous`: a pass already in the hook, called first; `always`: not only while active."""
    return inductor.scheduler_pass(_Pass(options, previous, always))


class _Pass:
    """Called by Inductor; its key is part of the FX graph cache's."""

    def __init__(self, options: Options, previous: Callable | None, always: bool):
        self.options = options
        self.previous = previous
        self.always = always

    def __call__(self, nodes: list[Any]) -> list[Any]:
        if self.previous is not None:
            nodes = self.previous(nodes)
        options = _active.get() or (self.options if self.always else None)
        return nodes if options is None else run_after_fusion(nodes, options)

    def key(self) -> Any:
        """None (no caching) where a previous pass has no identity."""
        previous = inductor.pass_key(self.previous)
        if self.previous is not None and previous is None:
            return None
        return ("bridge", implementation_hash(), repr(self.options), previous)
