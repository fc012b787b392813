"""For `bridge bench` and benchmarks/: end with exit status 1 on an internal error of Bridge's.

After such an error the code is Inductor's, so what was measured is not Bridge.
"""

from __future__ import annotations

import sys

from ..reports import bugs


def exit_status(status: int | None = None) -> int:
    """Return a benchmark's exit status: 1 if it was 0 (or None) and this process had an internal error of Bridge."""
    for bug in bugs():
        print(f"internal_error: {bug}", file=sys.stderr)
    return status or (1 if bugs() else 0)
