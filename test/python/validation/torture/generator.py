"""Define the interface of a generator of programs."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Protocol, cast

from .outcome import Outcome

#: Modules of this package that are generators, by the name on the command line.
GENERATORS = ("op_db", "corpus", "pytorch_tests", "models")

#: Exit statuses of a process whose GPU answers nothing more, after a kernel of eager's or Inductor's, or of Bridge's.
DEVICE_LOST, DEVICE_BROKEN = 86, 87


class Generator(Protocol):
    """Define a module that makes programs, deterministically by name.

    TIME_LIMIT: seconds for one case, after which it counts as hung; CASES_A_PROCESS: cases before a process is
    replaced. A module may have `prepare(target)` too, for what takes long once a process, of which no case's time is
    counted, and PRELOAD: modules that one process imports before the others are copied from it.
    """

    TIME_LIMIT: float
    CASES_A_PROCESS: int

    def names(self, target: str) -> Sequence[str]:
        """Return all cases of a target ("cpp", "triton" in the interpreter, "cuda"), in a fixed order."""

    def run(self, name: str, target: str) -> Outcome:
        """Make, compile, run and judge one case. Raises nothing that the case or Bridge raises."""


def load(name: str) -> Generator:
    """Import the generator of that name."""
    if name not in GENERATORS:
        raise ValueError(f"no generator {name!r}; there are {', '.join(GENERATORS)}")
    return cast("Generator", importlib.import_module(f"torture.{name}"))
