"""For the commands: a line about what takes more than two seconds, on a terminal or line by line."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from typing import TextIO

#: Seconds until there is a line, and between its changes.
PATIENCE, INTERVAL = 2.0, 0.5

#: Seconds until a line stands again where there is no terminal.
REMINDER = 30.0

#: Characters of the bar.
WIDTH = 20

#: Back to the first column, and nothing right of it.
_ERASE = "\r\x1b[K"


class Progress:
    """Show what is done, while the block runs.  Call it with (what, steps done, of how many)."""

    def __init__(self, stream: TextIO | None = None, lines: bool = False):
        """Take where to write, by default the standard error; lines: also where that is no terminal, a line a step."""
        self._stream = sys.stderr if stream is None else stream
        self._lines = lines
        self._state = ("starting", 0, 0)
        self._start = time.monotonic()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __call__(self, what: str, done: int = 0, of: int = 0) -> None:
        """Note what is done; of: 0 where nobody knows how much it is."""
        self._state = (what, done, of)

    def __enter__(self) -> Progress:  # noqa: PYI034 - Self is not in Python 3.10
        """Begin to show."""
        show = self._show if self._stream.isatty() else self._show_lines if self._lines else None
        if show is not None:
            self._thread = threading.Thread(target=show, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Take the line away."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def line(self, seconds: float) -> str:
        """Return what there is to say after so many seconds."""
        what, done, of = self._state
        filled = WIDTH * done // of if of else 0
        bar = f" [{'#' * filled}{'.' * (WIDTH - filled)}] {done}/{of}" if of else ""
        return f"bridge: {what}{bar}, {seconds:.0f} s"

    def _show(self) -> None:
        shown = False
        for seconds in self._ticks():
            if seconds >= PATIENCE:
                shown = True
                self._write(_ERASE + self.line(seconds))
        if shown:
            self._write(_ERASE)

    def _show_lines(self) -> None:
        """Write a line for each step that is not done at once, and again where it takes long."""
        step, due = "", PATIENCE
        for seconds in self._ticks():
            if self._state[0] != step:
                step, due = self._state[0], max(seconds + INTERVAL, PATIENCE)
            if seconds >= due:
                due = seconds + REMINDER
                self._write(self.line(seconds) + "\n")

    def _ticks(self) -> Iterator[float]:
        """Yield the seconds since the beginning, at intervals, until the block has ended."""
        while not self._ended.wait(INTERVAL):
            yield time.monotonic() - self._start

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
