"""Time a function, or what a script compiles, with Inductor alone and with Bridge in turn.

Of a function:  bridge time model.py:norm --input 2048x8192:bfloat16
Of a function with its backward:  bridge time model.py:norm --input 2048x8192:bfloat16 --backward
Of the graphs that a script compiles:  bridge time train.py -- --epochs 1

It says times with their spread, kernels and the bytes that they move, memory, and errors relative to float64.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..bench.red import exit_status
from ..reasons import Reason, explanation
from . import _program
from ._output import show, silence_profiler, without_worker_processes
from ._progress import Progress
from ._user_code import run_script

if TYPE_CHECKING:
    from ..bench.measure import Plan
    from ..bench.timing import Timing
    from ..offline.graphs import Graph

NAME = "time"


def register(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    _program.add_arguments(parser, function_required=False)
    _program.add_backward(parser)
    _program.add_option(parser)
    parser.add_argument("--device", choices=["cpu", "cuda"], help="default: cuda where there is a GPU")
    parser.add_argument("--rounds", type=int, default=40, help="runs of each that count, default %(default)s")
    parser.add_argument("--seconds", type=float, default=30, help="for all runs, else there are fewer; default 30")
    parser.add_argument("--no-graph", action="store_true", help="on a GPU run the calls, and no CUDA graphs of them")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def run(arguments: argparse.Namespace) -> int:
    """Print what was measured; return 1 after a fault, as then the code that was to be Bridge's is Inductor's."""
    silence_profiler()
    if arguments.rounds < 1:
        raise ValueError(f"--rounds must be at least 1, got {arguments.rounds}")
    _, function = _program.split(arguments.program)
    options = _program.options(arguments)
    from .. import config  # weight: torch; what is wrong so far is said at once
    from ..bench.timing import plan_for, total

    with Progress(lines=True) as progress, config.patch(options):
        device = _device(arguments.device)
        if device == "cpu":
            without_worker_processes()
        changes = {"rounds": arguments.rounds, "seconds": arguments.seconds, "dynamic": arguments.dynamic}
        prepare = functools.cache(functools.partial(_warm_up, device, progress))
        plan = plan_for(device, progress=progress, prepare=prepare, graphs=not arguments.no_graph, **changes)
        measured = _time_script if function is None else _time_function
        timings = list(measured(arguments, device, plan))
    if arguments.json:
        show(json.dumps([timing.to_dict() for timing in timings], indent=1))
    else:
        show("\n\n".join([*map(str, timings), *([total(timings)] if len(timings) > 1 else [])]))
    return exit_status(_failed(timings))


def _failed(timings: list[Timing]) -> int:
    """Return 1, and say why, if something was missing or broken; else 0."""
    faults = sorted({fault for timing in timings for fault in timing.faults})
    for fault in faults:
        print(f"bridge: [{fault}] {explanation(Reason[fault])}", file=sys.stderr)
    return 1 if faults else 0


def _warm_up(device: str, progress: Progress) -> None:
    """Compile something once; called when the function has run in eager mode, so that its errors are said first."""
    from ..bench.measure import warm_up

    progress("starting the compilers")
    warm_up(device)


def _device(given: str | None) -> str:
    from ..bench.gpu_measurements import has_gpu

    if given == "cuda" and not has_gpu():
        raise ValueError("--device cuda: torch finds no GPU")
    return given or ("cuda" if has_gpu() else "cpu")


def _time_function(arguments: argparse.Namespace, device: str, plan: Plan) -> Iterator[Timing]:
    from ..bench.timing import time_function
    from ..install import uninstall

    with _program.running(arguments) as program:
        uninstall()  # what the file may have installed: Inductor is to be measured without
        function, name = program.bound(), f"{arguments.program}{' with its backward' if arguments.backward else ''}"
        yield time_function(function, program.arguments, name, device, plan, arguments.backward)


def _time_script(arguments: argparse.Namespace, device: str, plan: Plan) -> Iterator[Timing]:
    from ..bench.timing import time_function

    _program.refuse_arguments_of_functions(arguments)
    plan.progress("running the script", 0, 0)
    graphs = _graphs(Path(arguments.program), arguments)
    for number, graph in enumerate(graphs, 1):
        assert graph.inputs is not None, "chosen by that"
        name = f"{arguments.program}, graph {number} of {len(graphs)}, called {_times(graph.calls)}"
        name += ", forward only" if graph.trained else ""
        yield time_function(graph.module, graph.inputs, name, device, _part(plan, number, len(graphs)))


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _part(plan: Plan, number: int, of: int) -> Plan:
    """Return a plan for one of several graphs, which all share its seconds."""

    def progress(what: str, done: int, steps: int) -> None:
        plan.progress(f"graph {number} of {of}: {what}", done, steps)

    return replace(plan, progress=progress, seconds=plan.seconds / of)


def _graphs(file: Path, arguments: argparse.Namespace) -> list[Graph]:
    """Return the graphs that a script compiles and calls; it runs in eager mode.  ValueError where there are none."""
    from ..install import uninstall
    from ..offline.graphs import collecting

    with collecting() as graphs:
        failure = run_script(file, arguments.script_arguments)
    uninstall()
    if failure is not None:
        raise failure
    called = [graph for graph in graphs if graph.inputs is not None]
    if not called:
        raise ValueError(f"{file} compiles nothing: neither Inductor nor Bridge was given a graph")
    return called
