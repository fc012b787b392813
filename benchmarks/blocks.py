"""Times fused kernels in blocks of so many rows and warps, which `profitability.rows_and_warps` rests on.

python benchmarks/blocks.py --pattern mla interleaved --rows 1 4 8 16 --warps 1 2 4
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from functools import partial
from unittest import mock

import torch
from gpu import compiled, input_sets
from patterns import LISTS, Pattern, selected

from bridge import Report, report
from bridge.bench.gpu_measurements import replay_time
from bridge.bench.red import exit_status
from bridge.lowering.triton import codegen, profitability


def main() -> None:
    """Print a line for each pattern that has a persistent kernel."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pattern", nargs="+", default=[""], help="parts of the names of those to measure")
    parser.add_argument("--list", choices=LISTS, default="engine", help="which functions (default: %(default)s)")
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32])
    parser.add_argument("--warps", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--dtype", default="bfloat16")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("this benchmark needs a GPU")
    print("| pattern | registers of a row | chosen | us | " + "fastest (rows x warps: us) |\n|---|---|---|---|---|")
    for pattern in selected(options.pattern, LISTS[options.list]):
        sets = input_sets(pattern, None, getattr(torch, options.dtype))
        blocks = itertools.product(options.rows, options.warps)
        times = sorted((microseconds(pattern, sets, block), block) for block in blocks)
        chosen, registers = microseconds(pattern, sets, None), row_registers()
        if registers is None:
            continue
        fastest = ", ".join(f"{rows} x {warps}: {us:.1f}" for us, (rows, warps) in times[:4])
        block = profitability.rows_and_warps(registers)
        print(f"| {pattern.name} | {registers} | {block} | {chosen:.1f} | {fastest} |", flush=True)


def microseconds(pattern: Pattern, sets: list[list[torch.Tensor]], block: tuple[int, int] | None) -> float:
    """Time of the pattern, compiled with such blocks; None: those that Bridge chooses."""
    choose = profitability.rows_and_warps if block is None else lambda registers: block
    uncached = torch.compiler.config.patch(force_disable_caches=True)
    with mock.patch.object(codegen, "rows_and_warps", choose), uncached, torch.no_grad():
        function = compiled(pattern, "bridge")
        return replay_time([partial(function, *s) for s in sets], max(len(sets), 8), replays=10)


def row_registers() -> int | None:
    """Of the last compilation's persistent kernel, if there is one."""
    decisions = [decision for group in (report() or Report()).groups for decision in group.decisions]
    found = [re.fullmatch(r"persistent: a row takes (\d+) registers", decision) for decision in decisions]
    return max((int(match[1]) for match in found if match), default=None)


if __name__ == "__main__":
    main()
    sys.exit(exit_status())
