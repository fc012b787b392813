"""Time what is reduced across memory on this machine's CPU: Inductor's C++, and one loop nest of Bridge's.

    python benchmarks/cpu_columns.py

Bridge is told to fuse. The last column says whether it does by itself: what it says of the cache's lines
(`bridge/inductor/cache_lines.py`) is checked against the times. Processor time of one thread, the least of nine rounds
in which the two alternate: a machine that others use too does not decide it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor

import bridge
from bridge.bench.red import exit_status

ROUNDS, ELEMENTS = 9, 2_000_000


def standardised(x: Tensor) -> Tensor:
    """Return columns of mean 0 and variance 1."""
    y = x - x.mean(0)
    return y * torch.rsqrt(y.square().mean(0) + 1e-5)


def norm(x: Tensor) -> Tensor:
    """Return images whose channels have mean 0 and variance 1 in each pixel."""
    return (x - x.mean(1, keepdim=True)) * torch.rsqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5)


def softmax(x: Tensor) -> Tensor:
    """Return the shares of channels in each pixel."""
    return torch.softmax(x, 1)


def transposed(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return sums of elements, and the sums with rows and columns exchanged."""
    total = x * 2 + x[0]
    return total, (total.transpose(-1, -2) * 0.5).contiguous()


CASES: list[tuple[Callable, tuple[int, ...]]] = [
    *[(standardised, (rows, 2048)) for rows in (32, 64, 256, 1024, 4096)],
    *[(standardised, (rows, 1000)) for rows in (64, 128, 256, 512, 1024, 4096)],
    *[(standardised, shape) for shape in ((2048, 100), (100, 5000), (60, 20000))],
    *[(norm, shape) for shape in ((4, 256, 14, 14), (8, 128, 20, 20), (4, 128, 28, 28), (4, 384, 28, 28))],
    *[(norm, shape) for shape in ((1, 512, 32, 32), (4, 96, 56, 56), (4, 64, 60, 60), (2, 48, 90, 90))],
    *[(norm, shape) for shape in ((2, 32, 100, 100), (2, 64, 128, 128), (1, 16, 300, 300))],
    *[(softmax, shape) for shape in ((2, 150, 80, 80), (4, 21, 100, 100), (4, 21, 128, 128))],
    *[(transposed, shape) for shape in ((56, 63, 128), (16, 256, 96), (64, 49, 96), (2, 100, 64))],
]


def compiled(function: Callable, x: Tensor, **options: object) -> Callable:
    """Return a function as Bridge makes it with these options, or as Inductor does without any."""
    torch._dynamo.reset()
    made = torch.compile(function, backend="bridge", options=options) if options else torch.compile(function)
    made(x)
    return made


def milliseconds(made: dict[str, Callable], x: Tensor) -> dict[str, float]:
    """Return the least processor time of a call, in milliseconds."""
    calls, times = max(1, ELEMENTS // x.numel()), dict.fromkeys(made, float("inf"))
    for _ in range(ROUNDS):
        for name, function in made.items():
            start = time.process_time()
            for _ in range(calls):
                function(x)
            times[name] = min(times[name], (time.process_time() - start) / calls * 1e3)
    return times


def measured(function: Callable, shape: tuple[int, ...]) -> str:
    """Return a line of the table."""
    x = torch.randn(shape)
    made = {"inductor": compiled(function, x), "bridge": compiled(function, x, force_fusion=True)}
    times = milliseconds(made, x)
    compiled(function, x, force_fusion=False)
    report = bridge.report()
    decided = "one nest" if report is not None and report.fused else "apart"
    name, sizes = function.__name__, " x ".join(map(str, shape))
    before, after = times["inductor"], times["bridge"]
    return f"| {name} | {sizes} | {before:.2f} -> {after:.2f} | {after / before:.2f} | {decided} |"


def main() -> None:
    """Print the table."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    print("| function | shape | ms | ratio | by itself |\n|---|---|---|---|---|")
    with torch.no_grad():
        for case in CASES:
            print(measured(*case), flush=True)


if __name__ == "__main__":
    main()
    sys.exit(exit_status())
