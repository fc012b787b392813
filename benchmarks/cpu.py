"""Time patterns on this machine's CPU: Inductor's C++ and Bridge's, in turn, in one run.

    python benchmarks/cpu.py                           # everything, at an eighth of each pattern's rows
    python benchmarks/cpu.py --pattern swiglu --rows 512 --out results/

The two alternate within every round, and the order alternates from round to round; the ratio is the median
of the rounds' ratios, so that a machine whose speed drifts does not decide it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from patterns import Pattern, selected

from bridge.backend import bridge
from bridge.bench.red import exit_status


def milliseconds(function: Callable, inputs: list[torch.Tensor], calls: int) -> float:
    """Return the mean time of a call."""
    function(*inputs)
    start = time.perf_counter()
    for _ in range(calls):
        function(*inputs)
    return (time.perf_counter() - start) / calls * 1e3


def compiled(pattern: Pattern, inputs: list[torch.Tensor]) -> dict[str, Callable]:
    """Return the pattern's function as each of the compilers has it."""
    functions = {}
    for name, backend in (("inductor", "inductor"), ("bridge", bridge)):
        torch._dynamo.reset()
        functions[name] = torch.compile(pattern.function, backend=backend)
        functions[name](*inputs)
    return functions


@dataclass
class Row:
    """Hold one line of the table; the ratio is the median of the rounds' ratios."""

    pattern: str
    shape: str
    dtype: str
    threads: int
    inductor_ms: float
    bridge_ms: float
    ratio: float


def measure(pattern: Pattern, options: argparse.Namespace) -> Row:
    """Return one line of the table."""
    rows = options.rows or max(1, pattern.full.rows // 8)
    inputs = pattern.make(rows, getattr(torch, options.dtype), "cpu")
    functions = compiled(pattern, inputs)
    times: dict[str, list[float]] = {name: [] for name in functions}
    for number in range(options.rounds):
        order = list(functions) if number % 2 else list(functions)[::-1]
        for name in order:
            times[name].append(milliseconds(functions[name], inputs, options.calls))
    ratios = [a / b for a, b in zip(times["inductor"], times["bridge"], strict=True)]
    shape = " x ".join(map(str, inputs[0].shape))
    medians = [statistics.median(values) for values in (times["inductor"], times["bridge"], ratios)]
    return Row(pattern.name, shape, options.dtype, torch.get_num_threads(), *medians)


def table(rows: list[Row]) -> str:
    """Return the table in Markdown."""
    lines = ["| pattern | shape | dtype | threads | Inductor ms | Bridge ms | ratio |", "|---|---|---|---|---|---|---|"]
    for r in rows:
        lines.append(
            f"| {r.pattern} | {r.shape} | {r.dtype} | {r.threads} | {r.inductor_ms:.3f} | {r.bridge_ms:.3f} "
            f"| {r.ratio:.3f} |"
        )
    return "\n".join(lines) + "\n"


def arguments() -> argparse.Namespace:
    """Return the command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pattern", nargs="+", default=[""], help="parts of the names of those to measure")
    parser.add_argument("--rows", type=int, help="(default: an eighth of the pattern's own)")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--out", type=Path, help="folder for results.md and results.json")
    return parser.parse_args()


def main() -> None:
    """Print the table, and write it where --out says."""
    options = arguments()
    torch.manual_seed(0)
    rows, chosen = [], selected(options.pattern)
    with torch.no_grad():
        for number, pattern in enumerate(chosen):
            row = measure(pattern, options)
            rows.append(row)
            print(f"[{number + 1}/{len(chosen)}] {row.pattern} {row.shape} {row.dtype}: Inductor "
                  f"{row.inductor_ms:.3f} ms, Bridge {row.bridge_ms:.3f} ms, ratio {row.ratio:.3f}",
                  flush=True)  # fmt: skip
    print(table(rows))
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "results.md").write_text(table(rows))
        (options.out / "results.json").write_text(json.dumps([asdict(r) for r in rows], indent=1))


if __name__ == "__main__":
    main()
    sys.exit(exit_status())
