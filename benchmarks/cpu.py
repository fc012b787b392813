"""Times patterns on this machine's CPU: Inductor's C++ and Bridge's, in turn, in one run.

    python benchmarks/cpu.py --rows 512 --columns 8192

The two alternate within every round, and the order alternates from round to round; the ratio is the median
of the rounds' ratios, so that a machine whose speed drifts does not decide it.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from patterns import PATTERNS, Pattern


def milliseconds(function, inputs: list[torch.Tensor], calls: int) -> float:
    function(*inputs)
    start = time.perf_counter()
    for _ in range(calls):
        function(*inputs)
    return (time.perf_counter() - start) / calls * 1e3


def compiled(pattern: Pattern, inputs: list[torch.Tensor]) -> dict:
    from bridge.backend import bridge

    functions = {}
    for name, backend in (("inductor", "inductor"), ("bridge", bridge)):
        torch._dynamo.reset()
        functions[name] = torch.compile(pattern.function, backend=backend)
        functions[name](*inputs)
    return functions


def measure(pattern: Pattern, rows: int, columns: int, rounds: int, calls: int) -> dict[str, list[float]]:
    inputs = pattern.make(rows, columns, torch.float32, "cpu")
    functions = compiled(pattern, inputs)
    times: dict[str, list[float]] = {name: [] for name in functions}
    for number in range(rounds):
        order = list(functions) if number % 2 else list(functions)[::-1]
        for name in order:
            times[name].append(milliseconds(functions[name], inputs, calls))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--columns", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--calls", type=int, default=20)
    options = parser.parse_args()
    torch.manual_seed(0)
    with torch.no_grad():
        for pattern in PATTERNS:
            times = measure(pattern, options.rows, options.columns, options.rounds, options.calls)
            ratios = [a / b for a, b in zip(times["inductor"], times["bridge"], strict=True)]
            print(
                f"{pattern.name} {options.rows} x {options.columns} float32, {torch.get_num_threads()} threads: "
                f"Inductor {statistics.median(times['inductor']):.3f} ms, Bridge "
                f"{statistics.median(times['bridge']):.3f} ms, ratio {statistics.median(ratios):.3f}"
            )


if __name__ == "__main__":
    main()
