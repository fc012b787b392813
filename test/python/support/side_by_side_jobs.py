"""Hold what test_side_by_side.py has processes do; they find it by its name."""

from __future__ import annotations

import os
import time

from bridge.bench.side_by_side import Turn


def noted(job: tuple[str, str], turn: Turn) -> str:
    """Write down when a job is prepared, and when it begins and ends what it does alone; "dies" does not come back."""
    name, path = job
    if name == "dies":
        os._exit(3)
    _note(path, f"prepared {name}")
    if name == "cannot be timed":
        return "not timed"
    with turn.alone():
        _note(path, f"begins {name}")
        time.sleep(0.1)
        _note(path, f"ends {name}")
    return f"timed {name}"


def _note(path: str, line: str) -> None:
    with open(path, "a") as file:
        file.write(f"{line}\n")
