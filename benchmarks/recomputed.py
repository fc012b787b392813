"""Time functions whose values neighbours need: one kernel computes them again, two write them and load them.

python benchmarks/recomputed.py --batch 10 64 --only pool

"one kernel" is what `force_fusion` makes; Bridge chooses by instructions (`lowering/lift/times.py`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

import bridge
from bridge.backend import bridge as bridge_backend
from bridge.bench.gpu_measurements import Replayed, launches, replay_times, replayed
from bridge.bench.red import exit_status

SHAPE = 256, 28, 28


def joined_pool(*parts: Tensor) -> tuple[Tensor, Tensor]:
    """Join four parts, each with a bias, and take the largest of each window."""
    half = len(parts) // 2
    x = torch.cat([part + bias[:, None, None] for part, bias in zip(parts[:half], parts[half:], strict=True)], 1)
    return x, F.max_pool2d(x, 3, 1, 1)


def pool(activation: Callable, size: int, step: int, around: int) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
    def function(x: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        y = activation(x + bias[:, None, None])
        return y, F.max_pool2d(y, size, step, around)

    return function


def convolve(activation: Callable, size: int) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return a causal convolution along the tokens, of each channel, of so many tokens."""

    def function(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        y = activation(x)
        before = F.pad(y, (0, 0, size - 1, 0))
        return y, sum(before[:, i : i + x.shape[1]] * weight[i] for i in range(size))

    return function


def mix_with_last(x: Tensor, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Mix a gated token with the one before it."""
    gated = torch.sigmoid(x) * y
    return gated, gated * weight + F.pad(gated, (0, 0, 1, 0))[:, :-1] * (1 - weight)


def laplacian(x: Tensor) -> tuple[Tensor, Tensor]:
    y = torch.tanh(x)
    p = F.pad(y, (1, 1, 1, 1))
    return y, 4 * y - p[:, 1:-1, 2:] - p[:, 1:-1, :-2] - p[:, 2:, 1:-1] - p[:, :-2, 1:-1]


def scaled_pool(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Scale each channel of each image, and take what a pool changes: a group norm's last step in PoolFormer."""
    y = (x * scale + shift).to(x.dtype)
    return F.avg_pool2d(y, 3, 1, 1, count_include_pad=False) - y


def normalised_pool(mean: Tensor, square: Tensor, weight: Tensor, *parts: Tensor) -> Tensor:
    """Normalise a sum by the mean and the square of each image, and add what a pool changes."""
    x = sum(parts[1:], parts[0])
    y = ((x - mean) * torch.rsqrt(square * square + 1e-6) * weight).to(x.dtype)
    return x + F.avg_pool2d(y, 3, 1, 1, count_include_pad=False) - y


def normalised_mix(x: Tensor, mean: Tensor, square: Tensor, weight: Tensor, share: Tensor) -> Tensor:
    """Normalise tokens by numbers of their own, and mix each with the one before it."""
    y = (x - mean) * torch.rsqrt(square * square + 1e-6) * weight
    return y * share + F.pad(y, (0, 0, 1, 0))[:, :-1] * (1 - share)


def functions(batch: int) -> dict[str, tuple[Callable, list[tuple[int, ...]]]]:
    """Return name -> (function, shapes of its inputs); images have their channels last."""
    image, tokens = (batch, *SHAPE), (8, 16 * batch, 2048)
    of_image, of_token = (batch, 1, 1, 1), (*tokens[:2], 1)
    parts = [64, 128, 32, 32]
    activations: dict[str, Callable] = {"relu": F.relu, "silu": F.silu, "gelu": F.gelu}
    return {
        "joined, pool 3": (joined_pool, [*((batch, c, *SHAPE[1:]) for c in parts), *((c,) for c in parts)]),
        **{f"{n}, pool 3": (pool(a, 3, 1, 1), [image, SHAPE[:1]]) for n, a in activations.items()},
        **{f"{n}, pool 2 by 2": (pool(a, 2, 2, 0), [image, SHAPE[:1]]) for n, a in activations.items()},
        **{
            f"{n}, convolve {size}": (convolve(a, size), [tokens, (size, 2048)])
            for n, a in activations.items()
            for size in (2, 3, 4)
        },
        "gate, mix with last": (mix_with_last, [tokens, tokens, (2048,)]),
        **{
            f"normalised sum of {n}, pool 3": (normalised_pool, [of_image, of_image, (*SHAPE[:1], 1, 1), *[image] * n])
            for n in (1, 2, 4)
        },
        "scaled, pool 3": (scaled_pool, [image, (*image[:2], 1, 1), (*image[:2], 1, 1)]),
        "normalised, mix with last": (normalised_mix, [tokens, of_token, of_token, (2048,), (2048,)]),
        "tanh, laplacian": (laplacian, [(batch // 2, 1024, 1024)]),
    }


def compiled(function: Callable, backend: Callable | str, inputs: list[Tensor]) -> tuple[Replayed, int]:
    """Return (a graph of calls of the compiled function, launches of a call)."""
    torch._dynamo.reset()
    call = partial(torch.compile(function, backend=backend, dynamic=False), *inputs)
    call()
    return replayed([call], 10), len(launches(call))


def measure(function: Callable, inputs: list[Tensor]) -> tuple[list[float], list[int]]:
    """Return (microseconds, launches) of Inductor's kernels, of one in their place, and of what Bridge has."""
    with torch.no_grad():
        theirs = compiled(function, "inductor", inputs)
        with bridge.config.patch(force_fusion=True):
            one = compiled(function, bridge_backend, inputs)
        found = [theirs, one, compiled(function, bridge_backend, inputs)]
        return replay_times([graph for graph, _ in found]), [count for _, count in found]


def made(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    x = torch.randn(shape, dtype=dtype, device="cuda")
    return x.to(memory_format=torch.channels_last) if len(shape) == 4 else x


def main() -> None:
    """Print a line for each function."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, nargs="+", default=[64])
    parser.add_argument("--only", nargs="+", default=[""], help="parts of the names of those to measure")
    parser.add_argument("--dtype", choices=["bfloat16", "float32"], default="bfloat16")
    options = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}\n")
    print("| function | batch | Inductor: us | one kernel: us | Bridge: us | | kernels |\n" + "|---" * 7 + "|")
    for batch in options.batch:
        for name, (function, shapes) in functions(batch).items():
            if any(part in name for part in options.only):
                inputs = [made(shape, getattr(torch, options.dtype)) for shape in shapes]
                (theirs, one, ours), kernels = measure(function, inputs)
                times = f"{theirs:.1f} | {one:.1f} | {ours:.1f} | {ours / theirs:.2f}"
                print(f"| {name} | {batch} | {times} | {', '.join(map(str, kernels))} |", flush=True)


if __name__ == "__main__":
    main()
    sys.exit(exit_status())
