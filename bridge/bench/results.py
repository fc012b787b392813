"""For `bridge bench` and docs/results.md: what was measured, as JSON and as tables, and the comparison with a run."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

#: What the two results of one GPU may differ by in bytes: blocks of the allocator.
MEMORY_SLACK = 1.01

#: Errors against eager are sums of rounding errors: so far apart, two are different.
ERROR_SLACK = 1.5


@dataclass(frozen=True)
class Side:
    """Hold what one compiler made of a case.

    launches: kernels, copies and fills of one call; triton_launches: those that Inductor generated; total_us: time of
    one call in a CUDA graph; triton_us: of that, in generated kernels; compile_s: first call, caches empty;
    peak_bytes: asked for at a time, beyond weights and inputs; error: relative to eager, in norm; spread_us: half of
    the range of the middle half of the times; kernels, moved_bytes: of the schedules, where they were counted.
    """

    launches: int
    triton_launches: int
    total_us: float
    triton_us: float
    compile_s: float
    peak_bytes: int
    error: float
    spread_us: float = 0.0
    kernels: int = 0
    moved_bytes: int = 0


@dataclass(frozen=True)
class Result:
    """Hold a case, both sides of it, and how sure its times are.

    ratio: Bridge's total time over Inductor's, median over rounds in which each ran once; spread: half of the
    range that the middle half of these ratios takes; triton_ratio, triton_spread: the same of the generated kernels;
    bridge_s: part of the compilation that is Bridge's; reasons: groups left apart, by reason, and faults;
    shared_kernels: distinct kernels that both have, which run with one configuration.
    """

    model: str
    mode: str
    batch: int
    inductor: Side
    bridge: Side
    ratio: float
    spread: float
    triton_ratio: float
    triton_spread: float
    bridge_s: float
    reasons: dict[str, int] = field(default_factory=dict)
    shared_kernels: int = 0

    @property
    def name(self) -> str:
        """Return the case's name."""
        return case_name(self.model, self.mode, self.batch)

    @property
    def compile_ratio(self) -> float:
        """Return Bridge's compile time over Inductor's."""
        return self.bridge.compile_s / self.inductor.compile_s


@dataclass
class Run:
    """Hold all of a run; failed: why, by the case's name; left_out: cases for which the time did not suffice."""

    heading: dict[str, str]
    results: list[Result] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def save(self, path: Path) -> None:
        """Write the run as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")


def case_name(model: str, mode: str, batch: int) -> str:
    """Return the name of a case; the batch of other modes than decoding follows from the model."""
    return f"{model} {mode}" + (f" b{batch}" if mode == "decode" else "")


def load(path: Path) -> Run:
    """Return what `Run.save` wrote; ValueError for anything else."""
    data = json.loads(path.read_text())
    try:
        results = [_result(entry) for entry in data.pop("results")]
        return Run(results=results, **data)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a result of `bridge bench`: {error}") from error


def _result(entry: dict) -> Result:
    sides = {side: Side(**entry[side]) for side in ("inductor", "bridge")}
    return Result(**{**entry, **sides})


def half_range(ratios: list[float]) -> float:
    """Return half of what the middle half of the values takes; 0 for one value, whose variation nobody knows."""
    if len(ratios) < 2:
        return 0.0
    first, _, third = statistics.quantiles(ratios, n=4)
    return (third - first) / 2


def regressions(new: Run, old: Run) -> list[str]:
    """List what is worse than it was, by more than both runs' noise; cases of one run only are not compared.

    Times are compared as ratios to Inductor's in the same run: GPUs and versions may differ.
    """
    before = {result.name: result for result in old.results}
    pairs = [(r, before[r.name]) for r in new.results if r.name in before]
    found = [f"{now.name}: {text}" for now, then in pairs for text in _worse(now, then)]
    done = {result.name for result in old.results}
    return found + [f"{name}: failed, {why}" for name, why in new.failed.items() if name in done]


def _worse(now: Result, then: Result) -> Iterator[str]:
    noise = now.spread + then.spread
    if now.ratio > then.ratio + noise:
        yield f"time over Inductor's was {then.ratio:.3f} and is {now.ratio:.3f} (noise {noise:.3f})"
    noise = now.triton_spread + then.triton_spread
    if now.triton_ratio > then.triton_ratio + noise:
        yield f"Triton time over Inductor's was {then.triton_ratio:.3f} and is {now.triton_ratio:.3f} ({noise:.3f})"
    saved_now, saved_then = (r.inductor.triton_launches - r.bridge.triton_launches for r in (now, then))
    if saved_now < saved_then and now.inductor.triton_launches >= then.inductor.triton_launches:
        yield f"{saved_then} Triton launches were saved and {saved_now} are"
    memory_now, memory_then = (r.bridge.peak_bytes / max(r.inductor.peak_bytes, 1) for r in (now, then))
    if memory_now > memory_then * MEMORY_SLACK:
        yield f"peak memory over Inductor's was {memory_then:.3f} and is {memory_now:.3f}"
    if now.bridge.error > max(then.bridge.error, now.inductor.error) * ERROR_SLACK:
        yield f"error against eager was {then.bridge.error:.2e} and is {now.bridge.error:.2e}"


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of values, NaN of none."""
    logs = [math.log(value) for value in values]
    return math.exp(statistics.fmean(logs)) if logs else math.nan


#: A line of the summary: its name, the results that it is about, and the value of one.
_SUMMARIES: list[tuple[str, Callable[[Result], bool], Callable[[Result], float]]] = [
    ("total time, everything", lambda r: True, lambda r: r.ratio),
    ("total time, prefill", lambda r: r.mode == "prefill", lambda r: r.ratio),
    ("total time, decoding, batch 1", lambda r: r.mode == "decode" and r.batch == 1, lambda r: r.ratio),
    ("total time, decoding, larger batches", lambda r: r.mode == "decode" and r.batch > 1, lambda r: r.ratio),
    ("total time, vision", lambda r: r.mode == "vision", lambda r: r.ratio),
    ("total time, training", lambda r: r.mode == "training", lambda r: r.ratio),
    ("Triton time, everything", lambda r: True, lambda r: r.triton_ratio),
    ("compile time, everything", lambda r: True, lambda r: r.compile_ratio),
]


def summary(results: list[Result]) -> str:
    """Return the geometric means of what Bridge takes over what Inductor takes, as a table."""
    lines = ["| Bridge over Inductor | cases | geometric mean | worst |", "|---|---|---|---|"]
    for name, among, value in _SUMMARIES:
        chosen = [r for r in results if among(r)]
        if chosen:
            worst = max(chosen, key=value)
            mean = geometric_mean(map(value, chosen))
            lines.append(f"| {name} | {len(chosen)} | {mean:.3f} | {value(worst):.3f} ({worst.name}) |")
    before, after = (sum(s.triton_launches for s in sides) for sides in _sides(results))
    if before:
        lines.append(f"| Triton launches, {before} -> {after} | {len(results)} | {after / before:.3f} | |")
    return "\n".join(lines) + "\n"


def _sides(results: list[Result]) -> tuple[list[Side], list[Side]]:
    return [r.inductor for r in results], [r.bridge for r in results]


_COLUMNS = (
    "model and mode | launches | Triton launches | total us | ratio | spread | Triton us | ratio | compile s "
    "| of that Bridge s | peak MB | error, Inductor | error, Bridge"
)


def table(results: list[Result]) -> str:
    """Return one line a case, `Inductor's -> Bridge's`."""
    lines = [f"| {_COLUMNS} |", "|---" * (_COLUMNS.count("|") + 1) + "|"]
    return "\n".join([*lines, *map(_line, results)]) + "\n"


def _line(r: Result) -> str:
    one, two = r.inductor, r.bridge
    return (
        f"| {r.name} | {one.launches} -> {two.launches} | {one.triton_launches} -> {two.triton_launches} "
        f"| {one.total_us:.1f} -> {two.total_us:.1f} | {r.ratio:.3f} | {r.spread:.3f} "
        f"| {one.triton_us:.1f} -> {two.triton_us:.1f} | {r.triton_ratio:.3f} "
        f"| {one.compile_s:.1f} -> {two.compile_s:.1f} | {r.bridge_s:.2f} "
        f"| {one.peak_bytes / 2**20:.1f} -> {two.peak_bytes / 2**20:.1f} | {one.error:.2e} | {two.error:.2e} |"
    )


def describe(run: Run) -> str:
    """Return the whole run in Markdown."""
    heading = "; ".join(f"{key} {value}" for key, value in run.heading.items())
    parts = [heading + "\n", table(run.results), summary(run.results)]
    if run.failed:
        parts.append("Failed:\n\n" + "".join(f"- {name}: {why}\n" for name, why in run.failed.items()))
    if run.left_out:
        parts.append(f"Left out for lack of time: {', '.join(run.left_out)}.\n")
    return "\n".join(parts)
