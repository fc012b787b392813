"""Numbered stages of a group in a folder of its own, each one replayable by hand.

A folder that cannot be written is said once in a warning; the compilation goes on.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ..reports import warn_once
from ..support.error_boundary import attempt
from ..support.os_errors import os_words

_compilations = itertools.count()

#: Names of the user's are in the IR, whatever the locale.
_ENCODING = "utf-8"


class Dump:
    """Write `NN-stage.ext` files of one group and tell `listeners` of them, as (stage, text).

    Without a folder and listeners it does nothing.
    """

    def __init__(self, folder: str | None, label: str, listeners: Iterable[Callable[[str, str], None]] = ()):
        self.folder = Path(folder) / f"{os.getpid()}-{next(_compilations):03d}-{label}" if folder else None
        self.label, self.listeners = label, tuple(listeners)
        self.counter = itertools.count()

    @property
    def active(self) -> bool:
        return self.folder is not None or bool(self.listeners)

    def write(self, stage: str, text: str | Callable[[], str]) -> Path | None:
        """Write one stage and return its path; None if nothing is dumped (a callable is not called then)."""
        if not self.active:
            return None
        with self._complaining():
            text = text if isinstance(text, str) else text()
            for listener in self.listeners:
                listener(stage, text)
            return self._write(f"{next(self.counter):02d}-{stage}", text)
        return None

    def loop_bodies(self, stage: str, nodes: Iterable[tuple[str, Any, Any]]) -> Path | None:
        """Write (name, sizes, LoopBody) of scheduler nodes."""
        return self.write(
            stage, lambda: "\n".join(f"{name} {sizes}\n{body.debug_str()}\n" for name, sizes, body in nodes)
        )

    def replay(self, translated: str, pipeline: str) -> None:
        """Write the command that runs the passes again on the translated module and prints what `fused.mlir` has."""
        command = f'bridge-opt {translated} {shlex.quote(f"--pass-pipeline={pipeline}")} "$@"'
        text = f'#!/bin/sh\n# --mlir-print-ir-after-all shows every pass.\ncd "$(dirname "$0")" && exec {command}\n'
        path = self._write("replay.sh", text)
        if path is not None:
            with self._complaining():
                path.chmod(0o755)

    @contextlib.contextmanager
    def pass_tree(self) -> Iterator[Path | None]:
        """Give a folder that MLIR may print its passes into; they become stages, even if one of them fails."""
        tree = None
        if self.active:
            with self._complaining():
                tree = Path(tempfile.mkdtemp(prefix="bridge-"))
        try:
            yield tree
        finally:
            if tree is not None:
                self._keep(tree)

    def _keep(self, tree: Path) -> None:
        """Make stages of what MLIR has printed."""
        for printed in sorted(tree.rglob("*.mlir"), key=_pass_order):
            self.write(f"after-{_pass_name(printed)}.mlir", partial(printed.read_text, _ENCODING))
        shutil.rmtree(tree, ignore_errors=True)

    def _write(self, name: str, text: str) -> Path | None:
        if self.folder is None:
            return None
        path = self.folder / name
        with self._complaining():
            self.folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text, _ENCODING)
            return path
        return None

    @contextlib.contextmanager
    def _complaining(self) -> Iterator[None]:
        """Dump nothing more after an error in the block; a bug of ours is one of the group's, too."""
        done = False
        with attempt(f"dump of {self.label}"):
            try:
                yield
            except OSError as error:
                place = self.folder.parent if self.folder else tempfile.gettempdir()
                warn_once(f"dump {place}", f"bridge cannot write its dump: {os_words(error)}")
                self.folder = None
            done = True
        if not done:
            self.folder, self.listeners = None, ()


def _pass_order(printed: Path) -> tuple[list[int], str]:
    """Return the order of a file `1_0_pass.mlir`: MLIR puts the place of the pass in each of its pipelines first."""
    return [int(n) for n in re.sub(r"[^\d_].*", "", printed.name).split("_") if n], str(printed)


def _pass_name(printed: Path) -> str:
    return re.sub(r"^[\d_]*", "", printed.stem)
