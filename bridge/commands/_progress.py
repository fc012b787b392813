"""For the commands: a line on the terminal about what takes more than two seconds."""

from __future__ import annotations

import sys
import threading
import time
from typing import TextIO

#: Seconds until there is a line, and between its changes.
PATIENCE, INTERVAL = 2.0, 0.5

#: Characters of the bar.
WIDTH = 20

#: Back to the first column, and nothing right of it.
_ERASE = "\r\x1b[K"


class Progress:
    """Shows what is done, while the block runs; only on a terminal.  Call it with (what, steps done, of how many)."""

    def __init__(self, stream: TextIO | None = None):
        """Take where to write, by default the standard error."""
        self._stream = sys.stderr if stream is None else stream
        self._state = ("starting", 0, 0)
        self._start = time.monotonic()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __call__(self, what: str, done: int = 0, of: int = 0) -> None:
        """Note what is done; of: 0 where nobody knows how much it is."""
        self._state = (what, done, of)

    def __enter__(self) -> Progress:  # noqa: PYI034 - Self is not in Python 3.10
        """Begin to show."""
        if self._stream.isatty():
            self._thread = threading.Thread(target=self._show, daemon=True)
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
        while not self._ended.wait(INTERVAL):
            seconds = time.monotonic() - self._start
            if seconds >= PATIENCE:
                shown = True
                self._stream.write(_ERASE + self.line(seconds))
                self._stream.flush()
        if shown:
            self._stream.write(_ERASE)
            self._stream.flush()
