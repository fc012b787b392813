"""Time kernels that Inductor makes in stages (`nested_reduction`, torch 2.15) beside those that Bridge makes itself.

python benchmarks/stages.py --rows 64 8192 --only fp8

Bridge makes its own where a row fits in registers, which these measurements are the reason for.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from quantisation import E4M3, E4M3_MAX, blocks_float, rms
from torch import Tensor
from torch._inductor import config

from bridge.backend import bridge
from bridge.bench.gpu_measurements import launches, relative_error, replay_time
from bridge.bench.red import exit_status

#: The inputs of one pass over all sets, in bytes: more than the L2 cache of an H200.
ALL_SETS = 256 << 20


def softmax_fp8(x: Tensor) -> tuple[Tensor, ...]:
    return blocks_float(torch.softmax(x.float(), -1).to(x.dtype), 64)


def layer_norm_heads(x: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    y = F.layer_norm(x, x.shape[-1:], weight, bias)
    return y, y.unflatten(-1, (-1, 128)).float().amax(-1)


def two_norms(x: Tensor, weight: Tensor, head_weight: Tensor) -> Tensor:
    """Norm a row, and each of its heads."""
    return rms(rms(x, weight).unflatten(-1, (-1, 128)), head_weight)


def residual_fp8(x: Tensor, residual: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    total = x + residual
    return total, *blocks_float(rms(total, weight), 128)


def int8_blocks(x: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    y = rms(x, weight).float().unflatten(-1, (-1, 64))
    scale = y.abs().amax(-1, keepdim=True) / 127
    return (y / scale).round().to(torch.int8).flatten(-2), scale.squeeze(-1)


def fp8_row_then_blocks(x: Tensor) -> tuple[Tensor, ...]:
    """Scale by the largest of a row, and return the mean of each block."""
    y = x.float()
    y = y / y.abs().amax(-1, keepdim=True) * E4M3_MAX
    return y.to(E4M3), y.unflatten(-1, (-1, 256)).mean(-1)


def norm_fp8(size: int) -> Callable[[Tensor, Tensor], tuple[Tensor, ...]]:
    """Return a norm with scales of blocks of `size` elements."""
    return lambda x, weight: blocks_float(rms(x, weight), size)


#: name -> (function, columns of each matrix, elements of each vector); the matrices come first.
FUNCTIONS: dict[str, tuple[Callable, list[int], list[int]]] = {
    **{f"RMSNorm, fp8 blocks of {size}": (norm_fp8(size), [4096], [4096]) for size in (16, 32, 64, 128, 256, 512)},
    **{
        f"RMSNorm of {width}, fp8 blocks of 128": (norm_fp8(128), [width], [width])
        for width in (2048, 5120, 7168, 14336, 16384)
    },
    "residual, RMSNorm, fp8 blocks of 128": (residual_fp8, [4096, 4096], [4096]),
    "softmax, fp8 blocks of 64": (softmax_fp8, [4096], []),
    "LayerNorm, amax of heads": (layer_norm_heads, [4096], [4096, 4096]),
    "RMSNorm, RMSNorm of heads": (two_norms, [4096], [4096, 128]),
    "RMSNorm, int8 blocks of 64": (int8_blocks, [4096], [4096]),
    "fp8, means of blocks": (fp8_row_then_blocks, [4096], []),
}


def input_sets(rows: int, matrices: list[int], vectors: list[int]) -> list[list[Tensor]]:
    """Return so many sets of bf16 inputs that they are not in the L2 cache when they are read again."""
    count = max(2, min(64, ALL_SETS // (2 * rows * sum(matrices))))
    shapes = [*((rows, columns) for columns in matrices), *((columns,) for columns in vectors)]
    return [[torch.randn(shape, dtype=torch.bfloat16, device="cuda") for shape in shapes] for _ in range(count)]


def measure(function: Callable, backend: Callable | str, sets: list[list[Tensor]]) -> tuple[float, str]:
    """Return (microseconds of a call, launches and error)."""
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend, dynamic=False)
    with torch.no_grad():
        result = compiled(*sets[0])
        kernels = len(launches(partial(compiled, *sets[0])))
        error = relative_error(result, function(*[one.double() for one in sets[0]]))
        us = replay_time([partial(compiled, *one) for one in sets], max(len(sets), 8))
    return us, f"{kernels}, {error:.1e}"


def main() -> None:
    """Print a line for each function and number of rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[64, 1024, 8192])
    parser.add_argument("--only", nargs="+", default=[""], help="parts of the names of those to measure")
    options = parser.parse_args()
    if not torch.cuda.is_available() or not hasattr(config.triton, "nested_reduction"):
        sys.exit("this benchmark needs a GPU, and a torch with nested_reduction")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}\n")
    print("| function | rows | Inductor, stages: us | Bridge: us | | kernels, error | |\n" + "|---" * 7 + "|")
    for name in (name for name in FUNCTIONS if any(part in name for part in options.only)):
        function, matrices, vectors = FUNCTIONS[name]
        for rows in options.rows:
            sets = input_sets(rows, matrices, vectors)
            theirs, their_result = measure(function, "inductor", sets)
            ours, our_result = measure(function, bridge, sets)
            times = f"{theirs:.1f} | {ours:.1f} | {ours / theirs:.2f}"
            print(f"| {name} | {rows} | {times} | {their_result} | {our_result} |", flush=True)


if __name__ == "__main__":
    main()
    sys.exit(exit_status())
