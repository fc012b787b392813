"""Declare the interface through which a compilation tells those that look at it: dumps, logs, traces, explanations.

The stages of a compilation import this module, and never `bridge.diagnostics`, which implements it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # Inductor and sympy are heavy, and `import bridge` is to be quick.
    import sympy

    from ..inductor.protocols import Kernel, Schedule
    from ..reports import Report

#: The name of a loop node, its extents, and its LoopBody.
LoopBodies = Iterable[tuple[str, Any, Any]]


class Stages(Protocol):
    """Take the text of each stage of one group."""

    @property
    def folder(self) -> Path | None:
        """Return the folder of the group's files; None where no files are written."""

    @property
    def active(self) -> bool:
        """Return True if anything wants the stages."""

    def write(self, stage: str, text: str | Callable[[], str]) -> Path | None:
        """Tell a stage's text; a callable is called only where somebody wants it."""

    def loop_bodies(self, stage: str, nodes: LoopBodies) -> Path | None:
        """Tell Inductor's loops of scheduler nodes."""

    def replay(self, translated: str, pipeline: str) -> None:
        """Tell how the passes are run again."""

    def pass_tree(self) -> AbstractContextManager[Path | None]:
        """Give a folder that MLIR prints the IR after each pass into; None where nobody wants it."""


class GroupRecord(Protocol):
    """Hold what an explanation knows of a group."""

    guards: list[str]

    def add_stage(self, name: str, text: str) -> None:
        """Keep a stage's text."""

    def of_part(self, nodes: set[str], with_stages: bool) -> GroupRecord:
        """Return the record of some of the group's kernels, by their nodes."""


class Recorder(Protocol):
    """Take what a compilation tells, which changes nothing of what it gives."""

    def is_recording(self) -> bool:
        """Return True if what is compiled now will be explained: no cache may answer."""

    def begin_group(self, kernels: Sequence[Kernel]) -> GroupRecord | None:
        """Record a group as it arrives; None where nobody asks."""

    def open_stages(self, group: str, dump_dir: str | None, record: GroupRecord | None) -> Stages:
        """Open what takes the stages of a group."""

    def finish_group(
        self, record: GroupRecord | None, fused: bool, sizes: Sequence[sympy.Symbol], pipeline: str
    ) -> None:
        """Record the sizes of a group, and which values of theirs would make it fuse if it did not."""

    def finish_graph(self, schedule: Schedule, report: Report, earlier: int) -> None:
        """Record what became of a report's groups from number `earlier` on."""

    def watch(self, schedule: Schedule) -> None:
        """Record the kernels that code is yet to be generated for."""

    def timed(self, name: str) -> AbstractContextManager[None]:
        """Add the block's time to torch's times of compilation."""

    def tell(self, report: Report) -> None:
        """Log a report."""


class _NoStages:
    """Take nothing."""

    folder: Path | None = None
    active = False

    def write(self, stage: str, text: str | Callable[[], str]) -> Path | None:
        return None

    def loop_bodies(self, stage: str, nodes: LoopBodies) -> Path | None:
        return None

    def replay(self, translated: str, pipeline: str) -> None:
        return None

    @contextlib.contextmanager
    def pass_tree(self) -> Iterator[Path | None]:
        yield None


#: For stages that nobody is to see.
NO_STAGES: Stages = _NoStages()

_recorder: Recorder | None = None


def use(recorder: Recorder) -> None:
    """Have compilations tell this recorder."""
    global _recorder
    _recorder = recorder


def recorder() -> Recorder:
    """Return what compilations tell; `import bridge` sets it."""
    assert _recorder is not None, "the package sets it when it is imported"
    return _recorder
