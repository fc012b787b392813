"""Time real models with random weights on a GPU, Inductor and Bridge in turn.

For each model and mode: launches, time in generated kernels and in all, compile time, peak memory, and the error
against eager.  The results are written after every case: what ends early has them up to there.
"""

from __future__ import annotations

import argparse

from ..bench.arguments import add_arguments as register
from ..bench.red import exit_status
from ._output import check_writable

__all__ = ["NAME", "register", "run"]

NAME = "bench"


def run(arguments: argparse.Namespace) -> int:
    """Return the exit status: 1 for failures or regressions, 2 where nothing can be measured."""
    if arguments.findings:
        check_writable(arguments.findings)
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
    from ..bench import command  # weight: torch; what is wrong so far is said at once

    return exit_status(command.run(arguments))
