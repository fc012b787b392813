"""Generate programs: every architecture of transformers and timm, small and with random weights.

Each has four cases: its code in inference and in training, and the errors of both, for what Bridge changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .model_compiles import GRAPH_PASSES, Compilation, Model, backend_of, compile_offline
from .model_errors import MORE_SEEDS, SEEDS, Runner, error_ratio
from .model_inputs import DOES_NOT_FIT
from .model_zoo import architectures, build
from .outcome import Outcome, Verdict

TIME_LIMIT = 900.0
CASES_A_PROCESS = 1
#: Imported once, by the process that the others are copies of.
PRELOAD = ("torture.model_libraries", "torture.models")

MODES = ("inference", "training", "inference-errors", "training-errors")

#: Geometric mean, over seeds, of Bridge's error by Inductor's.
LARGEST_RATIO = 1.05


def names(target: str) -> Sequence[str]:
    """Return every architecture in every mode; C++ code is only looked at where it runs."""
    modes = MODES if target == "triton" else MODES[2:]
    return [f"{architecture} {mode}" for mode in modes for architecture in architectures()]


def run(name: str, target: str) -> Outcome:
    """Compile one model with Inductor and with Bridge, and run both where that is asked."""
    start = time.monotonic()
    architecture, _, mode = name.partition(" ")
    outcome = _judge(name, architecture, mode, target)
    return Outcome(**{**vars(outcome), "seconds": time.monotonic() - start})


def _judge(name: str, architecture: str, mode: str, target: str) -> Outcome:
    training, errors = mode.startswith("training"), mode.endswith("errors")
    try:
        model = build(architecture, training).to(torch.bfloat16, "cuda" if target == "cuda" else "cpu")
    except DOES_NOT_FIT as error:
        return Outcome(name, Verdict.skipped, f"builds not: {_line(error)}")
    judge = _run_both if errors else _compile_both
    return judge(name, model, target)


def _compile_both(name: str, model: Model, target: str) -> Outcome:
    inductor, ours = (backend_of(backend, model.training) for backend in ("inductor", "bridge"))
    before = _attempt(lambda: compile_offline(model, inductor, only_scheduled=True))
    if isinstance(before, str):
        return Outcome(name, Verdict.skipped, f"Inductor: {before}")
    after = _attempt(lambda: compile_offline(model, ours))
    if not isinstance(after, str):
        return _compared(name, model, before, after)
    without = _attempt(lambda: compile_offline(model, inductor))
    if isinstance(without, str):
        return Outcome(name, Verdict.skipped, f"Inductor: {without}")
    return Outcome(name, Verdict.crash, after)


def _compared(name: str, model: Model, before: Compilation, after: Compilation) -> Outcome:
    figures = _figures(before, after)
    verdict, detail = _verdict(before, after)
    if verdict is Verdict.worse and after.kernels <= before.kernels:
        detail += _blame(model, before)
    return Outcome(name, verdict, detail, tuple(after.reasons), figures)


def _figures(before: Compilation, after: Compilation) -> dict[str, float]:
    return {
        "kernels_before": before.kernels,
        "kernels_after": after.kernels,
        "launches": after.launches,
        "peak_before": before.peak,
        "peak_after": after.peak,
        "graphs": len(after.peaks),
        "fused": after.fused,
        "choices": len(after.changed) - after.fused,
    }


def _verdict(before: Compilation, after: Compilation) -> tuple[Verdict, str]:
    if after.fault:
        return Verdict.internal_error, after.fault
    if after.kernels > before.kernels:
        return Verdict.worse, f"{before.kernels} -> {after.kernels} kernels"
    higher = [(b, a) for b, a in zip(before.peaks, after.peaks, strict=False) if a > b]
    if higher:
        return Verdict.worse, "peak of memory " + ", ".join(f"{b:,} -> {a:,} bytes" for b, a in higher)
    if after.fused:
        return Verdict.fused, ""
    if after.changed:
        return Verdict.restructured, ""
    return (Verdict.refused if after.reasons else Verdict.same), ""


def _blame(model: Model, before: Compilation) -> str:
    """Return in words whether a higher peak comes from the passes over the graph."""
    without = dict.fromkeys(GRAPH_PASSES, False)
    again = _attempt(lambda: compile_offline(model, backend_of("bridge", model.training, **without)))
    if isinstance(again, str):
        return f"; without passes over the graph: {again}"
    higher = any(a > b for b, a in zip(before.peaks, again.peaks, strict=False))
    return "; not of the passes over the graph" if higher else "; of the passes over the graph"


def _run_both(name: str, model: Model, target: str) -> Outcome:
    runner = Runner.of(model)
    ours = _attempt(lambda: runner.errors(backend_of("bridge", model.training), target, SEEDS))
    if not isinstance(ours, str) and not ours[1].changed and not ours[1].fault:
        verdict = Verdict.refused if ours[1].reasons else Verdict.same
        return Outcome(name, verdict, reasons=tuple(ours[1].reasons), figures={"error": _mean(ours[0])})
    theirs = _attempt(lambda: runner.errors(backend_of("inductor", model.training), target, SEEDS))
    if isinstance(theirs, str):
        return Outcome(name, Verdict.skipped, f"Inductor: {theirs}")
    if isinstance(ours, str):
        return Outcome(name, Verdict.crash, ours)
    if error_ratio(ours[0], theirs[0]) > LARGEST_RATIO:
        _look_again(runner, model, target, ours, theirs)
    return _compared_errors(name, ours, theirs)


def _look_again(runner: Runner, model: Model, target: str, ours: tuple, theirs: tuple) -> None:
    """Add the errors with more seeds, which tell chance from rounding."""
    ours[0].extend(runner.errors(backend_of("bridge", model.training), target, MORE_SEEDS)[0])
    theirs[0].extend(runner.errors(backend_of("inductor", model.training), target, MORE_SEEDS)[0])


def _compared_errors(name: str, ours: tuple, theirs: tuple) -> Outcome:
    (errors, after), (inductors, before) = ours, theirs
    ratio = error_ratio(errors, inductors)
    figures = _figures(before, after) | {"error": _mean(errors), "error_inductor": _mean(inductors), "ratio": ratio}
    verdict, detail = _verdict(before, after)
    if verdict is not Verdict.internal_error and ratio > LARGEST_RATIO:
        passes = sorted({change.split(":")[0][:60] for change in after.changed})
        verdict, detail = Verdict.wrong, f"error {ratio:.3f} x Inductor's; {'; '.join(passes)[:300]}"
    return Outcome(name, verdict, detail, tuple(after.reasons), figures)


def _mean(errors: Sequence[float]) -> float:
    return sum(errors) / len(errors)


def _attempt(step: Callable[[], Any]) -> Any:
    """Return what a step gives, or in one line what it raised: any exception, as Dynamo and Triton have their own."""
    try:
        return step()
    except Exception as error:  # noqa: BLE001 - the boundary of a case
        return f"{type(error).__name__}: {_line(error)}"


def _line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["no message"]
    # Dynamo says on the first line only that a backend raised, and on the second what.
    return " ".join(lines[: 2 if lines[0].endswith("raised:") else 1])[:300]
