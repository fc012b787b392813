"""Time fused kernels in blocks of so many rows and warps, which `profitability.rows_and_warps` rests on.

python benchmarks/blocks.py --pattern mla interleaved --rows 1 4 8 16 --warps 1 2 4
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias
from unittest import mock

import torch
import training
from gpu import compiled, input_sets
from patterns import LISTS, selected

from bridge.backend import bridge
from bridge.bench.gpu_measurements import replay_time
from bridge.bench.red import exit_status
from bridge.lowering.triton import profitability


def main() -> None:
    """Print a line for each pattern that has a persistent kernel."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pattern", nargs="+", default=[""], help="parts of the names of those to measure")
    lists = [*LISTS, "training"]
    parser.add_argument("--list", choices=lists, default="engine", help="which functions (default: %(default)s)")
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32])
    parser.add_argument("--warps", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--dtype", default="bfloat16")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("this benchmark needs a GPU")
    print("| pattern | registers of a row, lanes | chosen | us | fastest (rows x warps: us) |\n|---|---|---|---|---|")
    for name, measured in functions(options):
        chosen, blocks = measured(None)
        times = sorted((measured(block)[0], block) for block in itertools.product(options.rows, options.warps))
        if not blocks:
            continue
        fastest = ", ".join(f"{rows} x {warps}: {us:.1f}" for us, (rows, warps) in times[:4])
        what = "; ".join(f"{registers}, {lanes}" for registers, lanes in blocks)
        by_rule = "; ".join(str(block) for block in blocks.values())
        print(f"| {name} | {what} | {by_rule} | {chosen:.1f} | {fastest} |", flush=True)


#: (registers of a row, lanes) -> the rule's block, of each persistent kernel.
Blocks: TypeAlias = "dict[tuple[int, int], tuple[int, int] | None]"

#: Takes a block, or None for the rule's; returns the microseconds, and what the rule has.
Measured: TypeAlias = "Callable[[tuple[int, int] | None], tuple[float, Blocks]]"


def functions(options: argparse.Namespace) -> Iterator[tuple[str, Measured]]:
    """Yield (name, what measures it)."""
    if options.list == "training":
        yield from training_functions(options.pattern)
        return
    for pattern in selected(options.pattern, LISTS[options.list]):
        sets = input_sets(pattern, None, getattr(torch, options.dtype))
        yield pattern.name, partial(microseconds, partial(compiled, pattern, "bridge"), sets)


def training_functions(parts: list[str]) -> Iterator[tuple[str, Measured]]:
    """Yield (name, what measures forward and backward) of those in whose name one of the parts is."""
    for name, (function, make) in training.chosen(parts).items():
        with torch.device("cuda"):
            case = training.training_case(name, function, training.randomized(make()))
        yield name, partial(microseconds, partial(case.compiled, training_compiler), [case.inputs])


def training_compiler(function: Callable) -> Callable:
    """Compile a function for training."""
    return torch.compile(function, backend=bridge, dynamic=False)


def microseconds(
    compile_it: Callable[[], Callable], sets: list[list[torch.Tensor]], block: tuple[int, int] | None
) -> tuple[float, Blocks]:
    """Return the time of a function, compiled with such blocks, and the blocks of the rule."""
    blocks: Blocks = {}
    by_rule = profitability.rows_and_warps

    def choose(row: profitability.Row, lanes: int, there: int, elements: int) -> tuple[int, int] | None:
        blocks[row.registers, lanes] = by_rule(row, lanes, there, elements)
        return block or blocks[row.registers, lanes]

    torch._dynamo.reset()
    uncached = torch.compiler.config.patch(force_disable_caches=True)
    with mock.patch.object(profitability, "rows_and_warps", choose), uncached, torch.no_grad():
        function = compile_it()
        return replay_time([partial(function, *s) for s in sets], max(len(sets), 8), replays=10), blocks


if __name__ == "__main__":
    main()
    sys.exit(exit_status())
