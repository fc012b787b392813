"""Times patterns on a GPU: Inductor, Inductor max-autotune and Bridge in one run, beside the copy bandwidth.

    python benchmarks/gpu.py --out results/            # everything, at each pattern's own size
    python benchmarks/gpu.py --pattern swiglu rope --rows 2048 4096 --dtype bfloat16 float32

Each function is captured in a CUDA graph that calls it on several sets of inputs which together are larger
than the L2 cache; the median over replays is reported.  Correctness is checked against float64 first.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from by_hand import swiglu_norm as swiglu_norm_by_hand
from patterns import LISTS, Pattern, selected, swiglu_norm

from bridge.bench.timing import copy_bandwidth, launches, relative_error, replay_time

#: The inputs of one pass over all sets, as a multiple of the L2 cache.
L2_MULTIPLE = 4


@dataclass
class Row:
    """One line of the table; times in microseconds, bandwidth in bytes a second."""

    pattern: str
    shape: str
    dtype: str
    kernels_inductor: int
    kernels_bridge: int
    inductor_us: float
    autotune_us: float | None
    bridge_us: float
    bytes: int
    floor_us: float
    error_inductor: float
    error_bridge: float
    by_hand_us: float | None = None

    @property
    def speedup(self) -> float:
        return self.inductor_us / self.bridge_us

    @property
    def of_copy(self) -> float:
        return self.floor_us / self.bridge_us


def input_sets(pattern: Pattern, rows: int | None, dtype: torch.dtype) -> list[list[torch.Tensor]]:
    """So many sets of inputs that one pass over them does not fit in the L2 cache."""
    first = pattern.make(rows, dtype, "cuda")
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    count = max(2, min(64, -(-L2_MULTIPLE * cache // pattern.traffic(first))))
    return [first, *(pattern.make(rows, dtype, "cuda") for _ in range(count - 1))]


def compiled(pattern: Pattern, backend: str, **options):
    """The pattern's function, compiled; each gets a Dynamo of its own."""
    from bridge.backend import bridge

    torch._dynamo.reset()
    chosen = bridge if backend == "bridge" else backend
    return torch.compile(pattern.function, backend=chosen, **options)


def measure(pattern: Pattern, rows: int | None, dtype: torch.dtype, bandwidth: float, autotune: bool) -> Row:
    sets = input_sets(pattern, rows, dtype)
    reference = pattern.function(*[t.double() for t in sets[0]])
    times, errors, kernels = {}, {}, {}
    variants = [("inductor", {}), ("bridge", {})]
    if autotune:
        variants.insert(1, ("autotune", {"mode": "max-autotune-no-cudagraphs"}))
    for name, options in variants:
        function = compiled(pattern, "bridge" if name == "bridge" else "inductor", **options)
        result = function(*sets[0])
        kernels[name] = len(launches(lambda f=function: f(*sets[0])))
        errors[name] = relative_error(result, reference)
        calls = max(len(sets), 8)
        times[name] = replay_time([lambda s=s, f=function: f(*s) for s in sets], calls)
    if pattern.function is swiglu_norm:
        times["by hand"] = replay_time([lambda s=s: swiglu_norm_by_hand(*s) for s in sets], calls)
    traffic = pattern.traffic(sets[0])
    return Row(
        pattern.name, shape(sets[0]), str(dtype).removeprefix("torch."), kernels["inductor"], kernels["bridge"],
        times["inductor"], times.get("autotune"), times["bridge"], traffic, traffic / bandwidth * 1e6,
        errors["inductor"], errors["bridge"], times.get("by hand"),
    )  # fmt: skip


def shape(inputs: list[torch.Tensor]) -> str:
    """That of the first input, which tells those of the others."""
    return " x ".join(map(str, inputs[0].shape))


def table(rows: list[Row], heading: str) -> str:
    lines = [
        heading,
        "",
        ("| pattern | shape | dtype | kernels | Inductor us | max-autotune us | by hand us | Bridge us | ratio | of copy "
        "| error, Inductor | error, Bridge |"),
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        autotune, by_hand = (f"{us:.1f}" if us is not None else "-" for us in (r.autotune_us, r.by_hand_us))
        lines.append(
            f"| {r.pattern} | {r.shape} | {r.dtype} | {r.kernels_inductor} -> {r.kernels_bridge} "
            f"| {r.inductor_us:.1f} | {autotune} | {by_hand} | {r.bridge_us:.1f} | {r.speedup:.2f} | {r.of_copy:.2f} "
            f"| {r.error_inductor:.2e} | {r.error_bridge:.2e} |"
        )
    return "\n".join(lines) + "\n"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pattern", nargs="+", default=[""], help="parts of the names of those to measure")
    parser.add_argument("--list", choices=LISTS, default="engine", help="which functions (default: %(default)s)")
    parser.add_argument("--rows", type=int, nargs="+", default=[None], help="(default: the pattern's own)")
    parser.add_argument("--dtype", nargs="+", default=["bfloat16"])
    parser.add_argument("--autotune", action="store_true", help="also measure Inductor's max-autotune")
    parser.add_argument("--out", type=Path, help="folder for results.md and results.json")
    return parser.parse_args()


def measure_all(options: argparse.Namespace, bandwidth: float) -> Iterator[Row]:
    chosen = selected(options.pattern, LISTS[options.list])
    for number, pattern in enumerate(chosen):
        for rows, name in itertools.product(options.rows, options.dtype):
            row = measure(pattern, rows, getattr(torch, name), bandwidth, options.autotune)
            print(f"[{number + 1}/{len(chosen)}] {row.pattern} {row.shape} {name}: {row.kernels_inductor} -> "
                  f"{row.kernels_bridge} kernels, {row.inductor_us:.1f} -> {row.bridge_us:.1f} us "
                  f"({row.speedup:.2f}x, {row.of_copy:.2f} of copy)", flush=True)  # fmt: skip
            yield row


def main() -> None:
    options = arguments()
    if not torch.cuda.is_available():
        sys.exit("this benchmark needs a GPU")
    torch.manual_seed(0)
    bandwidth = copy_bandwidth()
    import triton

    heading = (
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}, "
        f"copy bandwidth {bandwidth / 1e12:.2f} TB/s; `{' '.join(['python', *sys.argv])}`"
    )
    print(heading, flush=True)
    with torch.no_grad():
        rows = list(measure_all(options, bandwidth))
    print(table(rows, heading))
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "results.md").write_text(table(rows, heading))
        (options.out / "results.json").write_text(json.dumps([asdict(r) for r in rows], indent=1))


if __name__ == "__main__":
    main()
