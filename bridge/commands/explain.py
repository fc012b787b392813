"""Show what was fused and why the rest was not.

Of a function:  bridge explain model.py:norm --input 2048x8192:bfloat16
Of a function with its backward:  bridge explain model.py:norm --input 2048x8192:bfloat16 --backward
Of everything that a script compiles:  bridge explain train.py -- --epochs 1

Where the GPU is there that code is generated for, a function is also timed, with Inductor alone and with Bridge.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _program
from ._output import check_writable, counted, show, silence_profiler
from ._progress import Progress
from ._user_code import run_script

if TYPE_CHECKING:
    from ..diagnostics.explanation import Explanation

NAME = "explain"


def register(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    _program.add_arguments(parser, function_required=False)
    _program.add_backward(parser)
    _program.add_option(parser)
    parser.add_argument("--target", default="cuda:sm_90", help="cpu, cuda:sm_90 (default) or cuda:sm_80; needs no GPU")
    parser.add_argument("--html", metavar="FILE", help="also write the report as one HTML file")
    parser.add_argument("--verbose", action="store_true", help="also print each group, with the passes' remarks")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument(
        "--measure",
        action=argparse.BooleanOptionalAction,
        help="time the function, and say measured times; default: where the target is this machine's GPU",
    )
    parser.add_argument("--no-registers", action="store_true", help="do not compile the kernels for their registers")
    parser.add_argument(
        "--expect-kernels", type=int, metavar="N", help="exit with 1 if there are more kernels, or nothing was compiled"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the explanation; return 1 after a fault, or if there are more kernels than --expect-kernels allows.

    What ends a script before its time is raised after the report of what it had compiled.
    """
    silence_profiler()
    if arguments.html:
        check_writable(arguments.html)
    explanation, failure = _explain(arguments)
    if arguments.html:
        print(f"written: {explanation.save_html(arguments.html)}", file=sys.stderr)
    show(_text(explanation, arguments))
    if failure is not None:
        raise failure
    if not explanation.graphs and ":" not in arguments.program:
        print(f"bridge: a function of it is explained by bridge explain {arguments.program}:FUNCTION", file=sys.stderr)
    for reason, detail in explanation.faults:
        print(f"bridge: [{reason}] {detail}", file=sys.stderr)
    return 1 if explanation.faults else _check(explanation, arguments.expect_kernels)


def _text(explanation: Explanation, arguments: argparse.Namespace) -> str:
    if arguments.json:
        return explanation.to_json()
    return f"{explanation}\n\n{explanation.details()}" if arguments.verbose else str(explanation)


def _check(explanation: Explanation, limit: int | None) -> int:
    """Return 1, and say why, if there are more kernels than the limit or none to count; 0 without a limit."""
    if limit is None:
        return 0
    if not explanation.graphs:
        wrong = "nothing was compiled, so there are no kernels to count"
    elif explanation.kernels_after > limit:
        wrong = f"{counted(explanation.kernels_after, 'kernel')} where at most {limit} were expected"
    else:
        return 0
    print(f"bridge: --expect-kernels {limit} failed: {explanation.name}: {wrong}", file=sys.stderr)
    return 1


def _explain(arguments: argparse.Namespace) -> tuple[Explanation, Exception | None]:
    """Return the explanation, and what ended a script before its time."""
    file, function = _program.split(arguments.program)
    options = _program.options(arguments)
    if function is None:
        return _explain_script(file, options, arguments)
    from ..diagnostics.explaining import explain  # weight: torch; what is wrong so far is said at once

    with Progress() as progress, _program.running(arguments) as program:
        measured = _measure(program, arguments, progress)
        progress("compiling")
        explanation = explain(
            program.bound(),
            *program.arguments,
            backend_target=arguments.target,
            dynamic=arguments.dynamic or False,
            options=options,
            registers=not arguments.no_registers,
            measured=measured,
            backward=arguments.backward,
        )
    return explanation, None


def _measure(
    program: _program.Program, arguments: argparse.Namespace, progress: Progress
) -> tuple[float, float] | None:
    """Return seconds of a call with Inductor alone and with Bridge; None where it is not to be timed."""
    from ..bench.timing import can_time, seconds_of_call  # weight: torch

    asked, target = arguments.measure, arguments.target
    if asked is False or (asked is None and not (target.startswith("cuda") and can_time(target))):
        return None
    if not can_time(target):
        raise ValueError(f"--measure: {target} is not this machine's")
    from .. import config
    from ..install import uninstall

    uninstall()  # what the file may have installed: Inductor is to be timed without
    with config.patch(_program.options(arguments)):
        call = program.bound(), program.arguments
        return seconds_of_call(*call, target, arguments.dynamic, progress, arguments.backward)


def _explain_script(
    file: Path, options: dict[str, Any], arguments: argparse.Namespace
) -> tuple[Explanation, Exception | None]:
    _program.refuse_arguments_of_functions(arguments)
    from ..diagnostics.explaining import compiling, make_explanation  # weight: torch

    with compiling(arguments.target, options) as recording:
        failure = run_script(file, arguments.script_arguments)
    if failure is not None and not recording.graphs:
        raise failure
    return make_explanation(recording, file.name, arguments.target, not arguments.no_registers), failure
