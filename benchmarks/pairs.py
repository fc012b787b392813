"""Time the kernels before and after each step of Bridge's, each in its place in a model, on a GPU.

python benchmarks/pairs.py [--only MODEL ...] [--modes training] [--side-by-side 4] --out FILE.json
python benchmarks/pairs.py --read FILE.json ...    # the table again, of several runs; needs no GPU

Each model is compiled as it is without Bridge's scheduling, and with one step more each time.  A pair is what the
kernels that a step replaces take, and what those in their place take.  The last step takes what Bridge refuses because
it would not pay, and what memory forbids: there a pair that gains is a chance that was missed.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from unittest import mock

import torch

import bridge as package
from bridge import inductor
from bridge.backend import bridge
from bridge.bench import gpu_measurements, zoo
from bridge.bench.cases import Case
from bridge.bench.command import attempt_by_name
from bridge.bench.gpu_measurements import Launch
from bridge.bench.red import exit_status
from bridge.bench.side_by_side import Turn, side_by_side
from bridge.diagnostics.recording import Kernel, Recording, recorded
from bridge.inductor import columns
from bridge.options import Options
from bridge.reports import Report
from bridge.scheduling import fuse, hook

if TYPE_CHECKING:
    from bridge.inductor.protocols import Schedule

#: Steps in Bridge's order; the name of a pair's step is that of the later of its two states.
STATES = ("apart", "bands", "columns", "launches", "forced")

#: Times that each state is run under the profiler.
ROUNDS = 9

#: Microseconds by which two measurements of one kernel differ without a cause, and the share of the time that is.
NOISE_US, NOISE = 0.7, 0.02


#: An operation: the number of its graph, and its name in that.
Operation: TypeAlias = "tuple[int, str]"


@dataclass(frozen=True)
class Timed:
    """Hold a kernel of generated code in a model: its name, operations with their graph, source, microseconds."""

    name: str
    operations: frozenset[Operation]
    source: str
    us: float


@dataclass(frozen=True)
class Pair:
    """Hold what one step made of some kernels; before, after: the name, microseconds and source of each kernel."""

    model: str
    step: str
    before: list[tuple[str, float, str]]
    after: list[tuple[str, float, str]]

    @property
    def gain(self) -> float:
        """Return the microseconds saved."""
        return sum(us for _, us, _ in self.before) - sum(us for _, us, _ in self.after)

    @property
    def noise(self) -> float:
        """Return the microseconds of gain or loss that mean nothing."""
        return max(NOISE_US, NOISE * sum(us for _, us, _ in self.before))


# ---------------------------------------------------------------------------------------------------------
# Which kernels took the place of which
# ---------------------------------------------------------------------------------------------------------


def timed(kernels: Iterable[Kernel], launches: Iterable[tuple[str, float]]) -> list[Timed]:
    """Return kernels with their times; ValueError where a launch is of none of them.

    launches: (name, microseconds) in the order in which they run.  What PyTorch adds up for a kernel of rows and
    columns is launched after it, and counts as a part of it.
    """
    waiting: dict[str, list[Kernel]] = defaultdict(list)
    for kernel in kernels:
        waiting[kernel.name].append(kernel)
    found: list[Timed] = []
    for name, us in launches:
        if Launch(name, us).triton:
            if not waiting[name]:
                raise ValueError(f"{name} was launched more often than it was defined")
            kernel = waiting[name].pop(0)
            operations = {(kernel.graph, one) for node in kernel.nodes for one in node.split("_")}
            found.append(Timed(name, frozenset(operations), kernel.source.replace(name, "kernel"), us))
        elif "reduce_kernel" in name and found:
            last = found.pop()
            found.append(Timed(last.name, last.operations, last.source, last.us + us))
    return found


def pairs(
    model: str, step: str, before: list[Timed], after: list[Timed], links: Iterable[set[Operation]] = ()
) -> Iterator[Pair]:
    """Yield the kernels that differ: on each side those that have operations in common, directly or by others.

    links: operations that belong together although no kernel has all of them.
    """
    of_operation: dict[Operation, list[int]] = defaultdict(list)
    kernels = [*before, *after]
    for number, kernel in enumerate(kernels):
        for operation in kernel.operations:
            of_operation[operation].append(number)
    linked = [[number for operation in link for number in of_operation.get(operation, [])] for link in links]
    for together in _components(len(kernels), [*of_operation.values(), *filter(None, linked)]):
        one = [kernels[n] for n in together if n < len(before)]
        two = [kernels[n] for n in together if n >= len(before)]
        if sorted(kernel.source for kernel in one) != sorted(kernel.source for kernel in two):
            yield Pair(model, step, *([(k.name, k.us, k.source) for k in side] for side in (one, two)))


def _components(count: int, sets: Iterable[list[int]]) -> list[list[int]]:
    """Return the numbers below `count` in lists of those that sets connect."""
    leader = list(range(count))

    def lead(number: int) -> int:
        while leader[number] != number:
            number = leader[number]
        return number

    for members in sets:
        for member in members:
            leader[lead(member)] = lead(members[0])
    found: dict[int, list[int]] = defaultdict(list)
    for number in range(count):
        found[lead(number)].append(number)
    return list(found.values())


# ---------------------------------------------------------------------------------------------------------
# Measuring
# ---------------------------------------------------------------------------------------------------------


def stages_of_sums(schedule: Schedule) -> Iterator[set[str]]:
    """Yield the operations of each sum over rows that has two stages, with those of the kernel that has the first.

    Where Inductor mixes rows and columns, no kernel has the second, which PyTorch does; another step may give it one.
    """
    nodes = [node for kernel in schedule for node in inductor.loop_nodes(kernel)]
    for first in filter(columns.is_column_part, nodes):
        made = inductor.buffers_made(first)
        second = {node.get_name() for node in nodes if inductor.buffers_read(node) & made}
        yield second | inductor.operation_names(first.scheduler.name_to_fused_node[first.get_name()])


@contextlib.contextmanager
def state(name: str, recording: Recording, links: list[set[Operation]]) -> Iterator[None]:
    """Have what the block compiles go through Bridge's steps up to a name; its passes over the graph always run.

    links: takes the operations that belong together although no kernel has all of them.
    """
    left_out = {"bands": ["add_up_columns", "share_launches"], "columns": ["share_launches"]}.get(name, [])

    def noted(schedule: Schedule, options: Options, report: Report) -> Schedule:
        changed = schedule if name == "apart" else fuse.fuse_schedule(schedule, options, report)
        links.extend({(recording.schedules, one) for one in link} for link in stages_of_sums(changed))
        return changed

    with contextlib.ExitStack() as stack:
        for step in left_out:
            stack.enter_context(mock.patch.object(fuse, step, lambda schedule, *_: schedule))
        stack.enter_context(mock.patch.object(hook, "fuse_schedule", noted))
        stack.enter_context(package.config.patch(force_fusion=name == "forced"))
        yield


@dataclass(frozen=True)
class Captured:
    """Hold a case in a state, in a CUDA graph, which another compilation does not change.

    kept: what owns the graph's memory; links: as of `pairs`.
    """

    graph: torch.cuda.CUDAGraph
    kept: object
    kernels: list[Kernel]
    links: list[set[Operation]]


def captured(case: Case, name: str, tuned: dict) -> Captured:
    """Return a case in a state; the update of an optimiser runs in eager mode.

    tuned: kernels of other states, with whose configurations those of the same source run; to it all others are added.
    """
    from torch._inductor.utils import fresh_cache  # weight: Inductor

    def compiler(function: Callable) -> Callable:
        return function if function.__name__ == "_update" else torch.compile(function, backend=bridge, dynamic=False)

    torch._dynamo.reset()
    gc.collect()
    case.rewind()
    links: list[set[Operation]] = []
    with fresh_cache(), recorded() as recording, state(name, recording, links):
        call = case.compiled(compiler)
        call(*case.inputs)
        kernels = inductor.tuned_kernels()
    inductor.share_choices(kernels, tuned)
    tuned |= kernels
    return Captured(*gpu_measurements.captured(lambda: call(*case.inputs), case.rewind), recording.kernels, links)


def measured(case: Case, turn: Turn) -> list[Pair]:
    """Return the pairs of a case; kernels that several states have run with one configuration."""
    tuned: dict = {}
    cases = {name: captured(case, name, tuned) for name in STATES}
    times: dict[str, list[list[Launch]]] = defaultdict(list)
    with turn.alone():
        for number in range(ROUNDS):
            for name in STATES[:: 1 if number % 2 else -1]:
                case.rewind()
                times[name].append(gpu_measurements.launches(cases[name].graph.replay))
    states = {name: timed(cases[name].kernels, medians(times[name])) for name in STATES}
    found: list[Pair] = []
    for one, two in itertools.pairwise(STATES):
        found += pairs(case.name, two, states[one], states[two], cases[one].links + cases[two].links)
    return found


def medians(rounds: list[list[Launch]]) -> list[tuple[str, float]]:
    """Return (name, median of the times) of each launch; a round of which the profiler has lost some does not count."""
    most = max(map(len, rounds))
    whole = [launches for launches in rounds if len(launches) == most]
    return [(same[0].name, statistics.median(one.us for one in same)) for same in zip(*whole, strict=True)]


def _job(job: tuple[str, str], turn: Turn) -> list[Pair] | str:
    """Return the pairs of a model in a mode, or why there are none."""
    return attempt_by_name(*job, 1, partial(measured, turn=turn))


def run(options: argparse.Namespace) -> list[Pair]:
    """Measure model after model, and save after each time."""
    architectures = [a for a in zoo.selected(options.only) if a.available]
    jobs = [(a.name, mode) for a in architectures for mode in a.modes if mode in options.modes]
    found: list[Pair] = []
    while jobs:
        now, jobs = jobs[: options.side_by_side], jobs[options.side_by_side :]
        for place, outcome in side_by_side(_job, now):
            if isinstance(outcome, list):
                found += outcome
            print(" ".join(now[place]), len(outcome) if isinstance(outcome, list) else outcome, flush=True)
            options.out.write_text(json.dumps([asdict(pair) for pair in found], indent=0))
    return found


# ---------------------------------------------------------------------------------------------------------
# The table
# ---------------------------------------------------------------------------------------------------------


def table(found: list[Pair]) -> Iterator[str]:
    """Yield a line for each step, and one for each pair of which the choice was wrong."""
    yield "| step | pairs | gain, us | lost by more than noise | us lost | worst |\n|---|---|---|---|---|---|"
    for step in STATES[1:]:
        own = [pair for pair in found if pair.step == step]
        lost = sorted((pair for pair in own if pair.gain < -pair.noise), key=lambda pair: pair.gain)
        worst = f"{lost[0].gain:.1f} us, {lost[0].model}" if lost else "-"
        gains, losses = (sum(max(0.0, sign * pair.gain) for pair in own) for sign in (1, -1))
        yield f"| {step} | {len(own)} | {gains:.0f} | {len(lost)} | {losses:.0f} | {worst} |"
    wrong = [p for p in found if (p.gain > p.noise if p.step == "forced" else p.gain < -p.noise)]
    for pair in sorted(wrong, key=lambda pair: -abs(pair.gain)):
        yield f"{pair.model}, {pair.step}: {pair.gain:+.1f} us\n    {_sum(pair.before)}\n    {_sum(pair.after)}"


def _sum(kernels: list[tuple[str, float, str]]) -> str:
    return " + ".join(f"{us:.1f} {name}" for name, us, _ in kernels)


def main() -> int:
    """Print the table of what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], help="models, by a part of the name")
    parser.add_argument("--modes", nargs="+", default=["training"])
    parser.add_argument("--side-by-side", type=int, default=4, help="models that are compiled at the same time")
    parser.add_argument("--out", type=Path, default=Path("pairs.json"))
    parser.add_argument("--read", type=Path, nargs="+", help="runs that were saved")
    options = parser.parse_args()
    if options.read:
        found = [Pair(**one) for path in options.read for one in json.loads(path.read_text())]
    elif gpu_measurements.has_gpu():
        found = run(options)
    else:
        sys.exit("this benchmark needs a GPU")
    print("\n".join(table(found)))
    return exit_status(0)


if __name__ == "__main__":
    sys.exit(main())
