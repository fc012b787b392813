"""Numbered stages of a compilation in a folder, each one replayable by hand.

A folder that cannot be written is said once in a warning; the compilation goes on.
"""

from __future__ import annotations

import itertools
import os
import warnings
from pathlib import Path

_compilations = itertools.count()


class Dump:
    """Writes `NN-stage.ext` files of one group; without a folder it does nothing."""

    def __init__(self, folder: str | None, label: str):
        self.folder = Path(folder) / f"{os.getpid()}-{next(_compilations):03d}-{label}" if folder else None
        self.counter = itertools.count()

    @property
    def active(self) -> bool:
        return self.folder is not None

    def write(self, stage: str, text: str) -> Path | None:
        """Writes one stage and returns its path; None if nothing is dumped."""
        if self.folder is None:
            return None
        path = self.folder / f"{next(self.counter):02d}-{stage}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        except OSError as error:
            warnings.warn(f"bridge cannot write its dump: {error}", RuntimeWarning, stacklevel=2)
            self.folder = None
            return None
        return path

    def replay(self, translated: str, pipeline: str) -> None:
        """The command that runs the passes again on the translated module."""
        command = f"bridge-opt {translated} --pass-pipeline='{pipeline}' --mlir-print-ir-after-all\n"
        path = self.write("replay.sh", f'#!/bin/sh\ncd "$(dirname "$0")" && exec {command}')
        if path is not None:
            path.chmod(0o755)
