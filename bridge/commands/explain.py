"""Show what was fused and why the rest was not.

Of a function:  bridge explain model.py:norm --input 2048x8192:bfloat16
Of everything that a script compiles:  bridge explain train.py
"""

from __future__ import annotations

import argparse
import runpy
import sys
from typing import TYPE_CHECKING

from . import _program

if TYPE_CHECKING:
    from ..diagnostics.explanation import Explanation

NAME = "explain"


def register(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    _program.add_arguments(parser, function_required=False)
    parser.add_argument("--target", default="cuda:sm_90", help="cpu, cuda:sm_90 (default) or cuda:sm_80; needs no GPU")
    parser.add_argument("--html", metavar="FILE", help="also write the report as one HTML file")
    parser.add_argument("--verbose", action="store_true", help="also print each group, with the passes' remarks")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument("--no-registers", action="store_true", help="do not compile the kernels for their registers")
    parser.add_argument("--expect-kernels", type=int, metavar="N", help="exit with 1 if there are more kernels")


def run(arguments: argparse.Namespace) -> int:
    """Print the explanation; return 1 if there are more kernels than --expect-kernels allows."""
    explanation = _explain(arguments)
    print(explanation.to_json() if arguments.json else explanation)
    if arguments.verbose and not arguments.json:
        print("", explanation.details(), sep="\n")
    if arguments.html:
        print(f"written: {explanation.save_html(arguments.html)}", file=sys.stderr)
    limit = arguments.expect_kernels
    return int(limit is not None and explanation.kernels_after > limit)


def _explain(arguments: argparse.Namespace) -> Explanation:
    from ..diagnostics.explaining import compiling, explain, make_explanation  # weight: torch

    registers = not arguments.no_registers
    file, function = _program.split(arguments.program)
    if function is not None:
        program = _program.load(arguments)
        dynamic = arguments.dynamic or False
        target = arguments.target
        return explain(
            program.function, *program.arguments, backend_target=target, dynamic=dynamic, registers=registers
        )
    with compiling(arguments.target, {}) as recording:
        runpy.run_path(str(file), run_name="__main__")
    return make_explanation(recording, file.name, arguments.target, registers)
