"""Time patterns on a GPU: Inductor, Inductor max-autotune and Bridge in one run, beside the copy bandwidth.

    python benchmarks/gpu.py --out results/            # everything, at each pattern's own size
    python benchmarks/gpu.py --pattern swiglu rope --rows 2048 4096 --dtype bfloat16 float32
    python benchmarks/gpu.py --function model.py:gated --shapes 4096x8192 8192
    python benchmarks/gpu.py --compiled-for 48          # as a server that was compiled for a short prompt

Each function is captured in a CUDA graph that calls it on several sets of inputs which together are larger
than the L2 cache; replays of the compilers alternate, and their medians are reported.  Correctness is checked
against float64 first.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import runpy
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
import triton
from by_hand import swiglu_norm as swiglu_norm_by_hand
from pattern_functions import swiglu_norm
from patterns import LISTS, Pattern, Sizes, selected
from results import Row, save, summary, table

from bridge.backend import bridge
from bridge.bench.gpu_measurements import copy_bandwidth, launches, relative_error, replay_times, replayed
from bridge.bench.red import exit_status

#: The inputs of one pass over all sets, as a multiple of the L2 cache.
L2_MULTIPLE = 4


def input_sets(pattern: Pattern, rows: int | None, dtype: torch.dtype) -> list[list[torch.Tensor]]:
    """So many sets of inputs that one pass over them does not fit in the L2 cache."""
    first = pattern.make(rows, dtype, "cuda")
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    count = max(2, min(64, -(-L2_MULTIPLE * cache // pattern.traffic(first))))
    return [first, *(pattern.make(rows, dtype, "cuda") for _ in range(count - 1))]


def compiled(pattern: Pattern, backend: str, few: list[torch.Tensor] | None, **options: str) -> Callable[..., Any]:
    """Return the pattern's function, compiled; each has a fresh Dynamo.

    few: inputs that it is compiled for, with symbolic rows; None to compile it for those that it is called with.
    """
    torch._dynamo.reset()
    chosen = bridge if backend == "bridge" else backend
    function = torch.compile(pattern.function, backend=chosen, **options)
    if few is None:
        return function
    pattern.mark_dynamic_rows(few)
    function(*few)
    return torch.compiler.set_stance("fail_on_recompile")(function)


def measure(
    pattern: Pattern, rows: int | None, dtype: torch.dtype, bandwidth: float, options: argparse.Namespace
) -> Row:
    """Return one line of the table; bandwidth: bytes a second of a copy."""
    sets = input_sets(pattern, rows, dtype)
    reference = pattern.function(*[t.double() for t in sets[0]])
    calls = max(len(sets), 8)
    graphs, errors, kernels = {}, {}, {}
    variants: list[tuple[str, dict[str, str]]] = [("inductor", {}), ("bridge", {})]
    if options.autotune:
        variants.insert(1, ("autotune", {"mode": "max-autotune-no-cudagraphs"}))
    for name, mode in variants:
        few = pattern.make(options.compiled_for, dtype, "cuda") if options.compiled_for else None
        function = compiled(pattern, "bridge" if name == "bridge" else "inductor", few, **mode)
        result = function(*sets[0])
        kernels[name] = len(launches(partial(function, *sets[0])))
        errors[name] = relative_error(result, reference)
        graphs[name] = replayed([partial(function, *s) for s in sets], calls)  # before Dynamo is reset
    if pattern.function is swiglu_norm:
        graphs["by hand"] = replayed([partial(swiglu_norm_by_hand, *s) for s in sets], calls)
    times = dict(zip(graphs, replay_times(list(graphs.values())), strict=True))
    traffic = pattern.traffic(sets[0])
    return Row(
        pattern.name, shape(sets[0]), str(dtype).removeprefix("torch."), kernels["inductor"], kernels["bridge"],
        times["inductor"], times.get("autotune"), times["bridge"], traffic, traffic / bandwidth * 1e6,
        errors["inductor"], errors["bridge"], times.get("by hand"),
    )  # fmt: skip


def shape(inputs: list[torch.Tensor]) -> str:
    """Return the first input's shape in words; the other shapes follow from it."""
    return " x ".join(map(str, inputs[0].shape))


def arguments() -> argparse.Namespace:
    """Return the command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pattern", nargs="+", default=[""], help="parts of the names of those to measure")
    parser.add_argument("--list", choices=LISTS, default="engine", help="which functions (default: %(default)s)")
    parser.add_argument("--function", metavar="FILE:NAME", help="a function of your own in their place")
    parser.add_argument("--shapes", nargs="+", metavar="NxM", help="shapes of its inputs, such as 4096x8192 8192")
    parser.add_argument("--rows", type=int, nargs="+", default=[None], help="(default: the pattern's own)")
    parser.add_argument("--dtype", nargs="+", default=["bfloat16"])
    parser.add_argument(
        "--compiled-for",
        type=int,
        metavar="ROWS",
        help="compile for so many rows, as a symbol, and then measure others",
    )
    parser.add_argument("--autotune", action="store_true", help="also measure Inductor's max-autotune")
    parser.add_argument("--out", type=Path, help="folder for NAME.json, NAME.md and NAME.svg")
    parser.add_argument("--name", help="of these files (default: the list's)")
    options = parser.parse_args()
    if bool(options.function) != bool(options.shapes):
        parser.error("--function needs --shapes, and they need it")
    if options.function and options.compiled_for:
        parser.error("--compiled-for is for the lists' functions: which sizes of --function are rows is not known")
    return options


def chosen_patterns(options: argparse.Namespace) -> list[Pattern]:
    """Return the patterns that are asked for, or the user's own function."""
    if not options.function:
        return selected(options.pattern, LISTS[options.list])
    path, name = options.function.rsplit(":", 1)
    shapes = Sizes(0, tuple(tuple(map(int, text.split("x"))) for text in options.shapes))
    return [Pattern(name, runpy.run_path(path)[name], shapes, shapes, inductor=0, bridge=0, reached=0)]


def measure_all(options: argparse.Namespace, bandwidth: float) -> Iterator[Row]:
    """Yield a line of the table for each pattern, number of rows and dtype."""
    chosen = chosen_patterns(options)
    for number, pattern in enumerate(chosen):
        for rows, name in itertools.product(options.rows, options.dtype):
            row = measure(pattern, rows, getattr(torch, name), bandwidth, options)
            print(f"[{number + 1}/{len(chosen)}] {row.pattern} {row.shape} {name}: {row.kernels_inductor} -> "
                  f"{row.kernels_bridge} kernels, {row.inductor_us:.1f} -> {row.bridge_us:.1f} us "
                  f"({row.speedup:.2f}x, {row.of_copy:.2f} of copy)", flush=True)  # fmt: skip
            yield row


def main() -> None:
    """Print the table, and write it where --out says."""
    options = arguments()
    if not torch.cuda.is_available():
        sys.exit("this benchmark needs a GPU")
    torch.manual_seed(0)
    bandwidth = copy_bandwidth()
    command = " ".join(["python", "benchmarks/gpu.py", *sys.argv[1:]])
    heading = (
        f"{datetime.date.today()}, {torch.cuda.get_device_name()}, torch {torch.__version__}, triton "
        f"{triton.__version__}, copy bandwidth {bandwidth / 1e12:.2f} TB/s: `{command}`"
    )
    print(heading, flush=True)
    rows: list[Row] = []
    with torch.no_grad():
        for row in measure_all(options, bandwidth):
            rows.append(row)
            if options.out:
                save(options.out, options.name or options.list, rows, heading)
    print(table(rows))
    print(summary(rows))


if __name__ == "__main__":
    main()
    sys.exit(exit_status())
