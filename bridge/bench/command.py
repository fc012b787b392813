"""For `bridge bench`: measure real models, Inductor and Bridge side by side in one run."""

from __future__ import annotations

import argparse
import datetime
import gc
import importlib.metadata
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias, TypeVar

import torch

from ..reports import bugs
from . import findings, gpu_measurements, measure
from .arguments import add_arguments
from .cases import FAILURES, Case, first_line, make_case
from .conditions import Conditions
from .corpus import command as corpus
from .named import asked_for, named
from .plot import Axis, Bars, write_svg
from .red import exit_status
from .results import Result, Run, case_name, describe, load, regressions
from .side_by_side import Turn, side_by_side
from .tuning import tuning_within
from .zoo import Architecture

#: (architecture, mode, batch of the sequences that are decoded)
Job = tuple[Architecture, str, int]


def jobs(options: argparse.Namespace) -> list[Job]:
    """List the jobs that are asked for and installed; as time may run out, larger batches and training come last."""
    chosen = [a for a in asked_for(options) if a.available]
    pairs = [(a, mode) for a in chosen for mode in a.modes if mode in options.modes]
    first, *others = options.batches
    once = [(a, mode, first) for a, mode in pairs]
    more = [(a, mode, batch) for batch in others for a, mode in pairs if mode == "decode"]
    return sorted(once + more, key=lambda job: (job[1] == "training", job[2]))


def run(options: argparse.Namespace) -> int:
    """Return the exit status: 1 for failures or regressions, 2 where nothing can be measured."""
    if options.corpus:
        return corpus.run(options)
    todo = jobs(options)
    missing = sorted({a.library for a in asked_for(options) if not a.available})
    if missing:
        print(f"not installed, so left out what needs it: {', '.join(missing)}", flush=True)
    if options.list or not todo:
        print("\n".join(_job_name(job) for job in todo) or "nothing to measure")
        return 0 if todo else 2
    return _find(todo, options) if options.findings else _measure(todo, options)


def _find(todo: list[Job], options: argparse.Namespace) -> int:
    """Write what stays apart; return the exit status."""
    if options.max_autotune:
        print("--max-autotune times templates, which --findings cannot do without a GPU", file=sys.stderr)
        return 2
    looked_at = [job for job in todo if job[2] == options.batches[0] and job[1] != "training"]
    if not looked_at:
        print("nothing to look at: --findings has no step of training, and the first of --batches", file=sys.stderr)
        return 2
    findings.find_all(looked_at, Conditions.asked_for(options), options.findings)
    return 0


def _measure(todo: list[Job], options: argparse.Namespace) -> int:
    """Print what was measured; return the exit status."""
    if not gpu_measurements.has_gpu():
        print("this benchmark needs a GPU", file=sys.stderr)
        return 2
    old = load(options.compare) if options.compare else None
    result = measure_all(todo, options)
    print(describe(result))
    worse = regressions(result, old) if old else []
    for line in worse:
        print(f"regression: {line}")
    return 1 if worse or result.failed else 0


def measure_all(todo: list[Job], options: argparse.Namespace) -> Run:
    """Measure case after case, or several side by side, and save after each time."""
    start, done, under = time.monotonic(), Run(_heading()), Conditions.asked_for(options)
    print("; ".join(f"{key} {value}" for key, value in done.heading.items()), flush=True)
    if options.side_by_side == 1:
        measure.warm_up()
    numbered, longest = list(enumerate(todo)), 0.0
    while numbered:
        before = time.monotonic()
        if options.budget_seconds and before - start + longest > options.budget_seconds:
            done.left_out = [_job_name(job) for _, job in numbered]
            break
        together, numbered = numbered[: options.side_by_side], numbered[options.side_by_side :]
        for (number, job), outcome in _outcomes(together, under):
            line = _add(done, job, outcome)
            print(f"[{number + 1}/{len(todo)}, {time.monotonic() - start:.0f} s] {line}", flush=True)
            _save(done, options.out)
        longest = max(longest, time.monotonic() - before)
    _save(done, options.out)
    return done


#: A result, or why there is none.
Outcome: TypeAlias = "Result | str"

#: What is measured of a case.
Measured = TypeVar("Measured")


def _outcomes(numbered: list[tuple[int, Job]], under: Conditions) -> Iterator[tuple[tuple[int, Job], Outcome]]:
    """Yield jobs with their outcomes as they come: of one job, or of several side by side."""
    if len(numbered) == 1:
        ((number, job),) = numbered
        yield (number, job), _attempt(job, under.measured(number), under)
        return
    by_name = [(number, architecture.name, mode, batch, under) for number, (architecture, mode, batch) in numbered]
    for place, outcome in side_by_side(_attempt_in_turn, by_name):
        yield numbered[place], outcome or "the process died"


def _attempt_in_turn(by_name: tuple[int, str, str, int, Conditions], turn: Turn) -> Outcome:
    """Return the outcome of a job in a process of its own, whose internal errors nobody else would see."""
    number, name, mode, batch, under = by_name
    with tuning_within(turn.tuning):
        return attempt_by_name(name, mode, batch, under.measured(number, alone=turn.alone), under)


#: What `bridge bench` does where nothing is asked for.
_USUAL = Conditions()


def attempt_by_name(
    name: str, mode: str, batch: int, measured: Callable[[Case], Measured], under: Conditions = _USUAL
) -> Measured | str:
    """Return what is measured of a model, in a process that has done nothing yet; or why there is nothing."""
    measure.warm_up()
    outcome = _attempt((named(name), mode, batch), measured, under)
    return f"internal_error: {bugs()[0]}" if bugs() else outcome


def _attempt(job: Job, measured: Callable[[Case], Measured], under: Conditions) -> Measured | str:
    """Return a job's result, or why there is none."""
    architecture, mode, batch = job
    try:
        with torch.no_grad():
            module = architecture.build(under.dtype, "cuda", under.small)
            return measured(make_case(architecture, module, mode, batch, under.sizes))
    except FAILURES as failure:
        return f"{type(failure).__name__}: {first_line(failure)[:300]}"
    finally:
        module = None
        torch._dynamo.reset()
        gc.collect()
        torch.cuda.empty_cache()


def _add(done: Run, job: Job, outcome: Outcome) -> str:
    """Add an outcome to a run; return a line that says it."""
    if isinstance(outcome, Result):
        done.results.append(outcome)
        return progress(outcome)
    done.failed[_job_name(job)] = outcome
    return f"{_job_name(job)}: failed, {outcome}"


def progress(result: Result) -> str:
    """Return one result in a line."""
    one, two = result.inductor, result.bridge
    return (
        f"{result.name}: {one.triton_launches} -> {two.triton_launches} of {one.launches} launches, "
        f"{result.shared_kernels} distinct kernels are the same, "
        f"{one.total_us:.0f} -> {two.total_us:.0f} us ({result.ratio:.3f} +- {result.spread:.3f}), "
        f"Triton {one.triton_us:.0f} -> {two.triton_us:.0f} us, compile {one.compile_s:.1f} -> {two.compile_s:.1f} s, "
        f"peak {one.peak_bytes / 2**20:.1f} -> {two.peak_bytes / 2**20:.1f} MB, "
        f"error {one.error:.1e} and {two.error:.1e}"
    )


def _job_name(job: Job) -> str:
    architecture, mode, batch = job
    return case_name(architecture.name, mode, batch)


def _heading() -> dict[str, str]:
    versions = {name: importlib.metadata.version(name) for name in _installed("transformers", "timm", "triton")}
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "GPU": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        **versions,
        "command": _command(sys.argv[1:]),
    }


def _command(arguments: list[str]) -> str:
    """Return the command line, of `bridge bench` or of a script in its place."""
    return " ".join(["bridge bench", *(arguments[1:] if arguments[:1] == ["bench"] else arguments)])


def _installed(*names: str) -> Iterator[str]:
    present = {distribution.name for distribution in importlib.metadata.distributions()}
    return (name for name in names if name in present)


def _save(done: Run, folder: Path | None) -> None:
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    done.save(folder / "models.json")
    (folder / "models.md").write_text(describe(done))
    plot(done, folder / "models.svg")


def main(arguments: list[str] | None = None) -> int:
    """Run `bridge bench` and return its exit status."""
    parser = argparse.ArgumentParser(prog="bridge bench", description=__doc__)
    add_arguments(parser)
    return exit_status(run(parser.parse_args(arguments)))


def plot(done: Run, path: Path) -> None:
    """Write the run as an SVG; bars that end left of the line at 1 are faster than Inductor."""
    cases = [
        Bars(r.name, [(r.ratio, r.spread), (r.triton_ratio, r.triton_spread)], f"{r.ratio:.3f}") for r in done.results
    ]
    title = f"Time over Inductor's: {done.heading['GPU']}"
    write_svg(path, cases, title, ["all kernels", "generated kernels"], Axis(0.5, 1.1))
