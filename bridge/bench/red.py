"""Benchmarks end red on an internal error of Bridge's: what they measured is Inductor's code then."""

from __future__ import annotations

import sys

from ..reports import bugs


def exit_status(status: int | None = None) -> int:
    """A benchmark's exit status: 1 if it was 0 (or None) and a compilation of this process had an internal error."""
    for bug in bugs():
        print(f"internal_error: {bug}", file=sys.stderr)
    return status or (1 if bugs() else 0)
