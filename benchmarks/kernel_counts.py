"""Count the kernels of all patterns for a GPU that need not be there: Inductor, its nested_reduction, and Bridge.

python benchmarks/kernel_counts.py
python benchmarks/kernel_counts.py orders long_rows
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import torch
from patterns import LISTS, Pattern
from torch._inductor import config

from bridge import offline
from bridge.backend import bridge
from bridge.bench.red import exit_status

NESTED = "triton.nested_reduction"


def kernels(pattern: Pattern, compile_fx: Callable | None, **patches: bool) -> int:
    """Return the number of launches for a GPU."""
    torch._dynamo.reset()
    inputs = pattern.make(None, torch.bfloat16, "cpu")
    return offline.compile_for_gpu(pattern.function, inputs, compile_fx=compile_fx, config_patches=patches).n_kernels


def chosen_lists(arguments: list[str] | None = None) -> list[str]:
    """Return the names of the lists that the command line asks for."""
    parser = argparse.ArgumentParser("kernel_counts.py")
    # Before Python 3.12 argparse asks whether the default is one of the choices, which no list can be.
    parser.add_argument("lists", nargs="*", default="engine", choices=LISTS, metavar="LIST")
    chosen = parser.parse_args(arguments).lists
    return [chosen] if isinstance(chosen, str) else chosen


def main() -> None:
    """Print the table."""
    chosen = chosen_lists()
    known = hasattr(config.triton, NESTED.split(".")[1])  # from torch 2.13 on
    print(f"torch {torch.__version__}\n\n| pattern | Inductor | with nested_reduction | Bridge |\n|---|---|---|---|")
    for pattern in (pattern for name in chosen for pattern in LISTS[name]):
        nested = kernels(pattern, None, **{NESTED: True}) if known else "-"
        print(f"| {pattern.name} | {kernels(pattern, None)} | {nested} | {kernels(pattern, bridge)} |", flush=True)


if __name__ == "__main__":
    main()
    sys.exit(exit_status())
