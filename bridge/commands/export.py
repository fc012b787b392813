"""Write the loops of a function as a module of MLIR's affine dialect.

bridge export model.py:norm --input 2048x8192 -o norm.mlir
"""

from __future__ import annotations

import argparse
from pathlib import Path

from . import _program
from ._output import check_writable, show
from ._progress import Progress

NAME = "export"


def register(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    _program.add_arguments(parser, function_required=True)
    parser.add_argument("-o", "--output", metavar="FILE", help="where to, default the standard output")
    parser.add_argument("--target", default="cuda:sm_90", help="whose loops: cpu, cuda:sm_90 (default) or cuda:sm_80")
    parser.add_argument("--locations", action="store_true", help="with the source line of every operation")


def run(arguments: argparse.Namespace) -> int:
    """Write the affine module of a function to a file or to the standard output."""
    _program.split(arguments.program)  # what is wrong with it is said before torch is loaded
    if arguments.output:
        check_writable(arguments.output)
    from ..diagnostics.exporting import export  # weight: torch

    with Progress() as progress, _program.running(arguments) as program:
        progress("compiling")
        text = export(
            program.bound(),
            *program.arguments,
            backend_target=arguments.target,
            dynamic=arguments.dynamic or False,
            locations=arguments.locations,
        )
    if arguments.output:
        Path(arguments.output).write_text(text)
    else:
        show(text, end="")
    return 0
