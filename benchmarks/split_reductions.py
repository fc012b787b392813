"""Functions whose rows Inductor reduces in two stages, and normalises in a third kernel.

It does so where memory along a row is apart, and there are not many rows: then the first stage has more of them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from pattern import ROWS, Pattern, Sizes, sizes
from torch import Tensor


def rms(x: Tensor) -> Tensor:
    wide = x if x.dtype == torch.float64 else x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def norm_of_transposed_sum(x: Tensor, y: Tensor) -> Tensor:
    """RMSNorm of a sum, one of whose operands is transposed."""
    return rms(x + y.t())


def softmax_of_transposed_product(x: Tensor, y: Tensor) -> Tensor:
    return torch.softmax(x * y.t(), -1)


def layer_norm_of_transposed_sum(x: Tensor, y: Tensor) -> Tensor:
    return F.layer_norm(x + y.t(), x.shape[-1:])


def layer_norm_of_channels(x: Tensor) -> Tensor:
    """LayerNorm and GELU after a convolution over time."""
    return F.gelu(F.layer_norm(x.transpose(1, 2), (x.shape[1],)))


def norm_of_channels(x: Tensor) -> Tensor:
    """RMSNorm over channels, which stay where they are."""
    return rms(x.transpose(1, 2)).transpose(1, 2).contiguous()


def softmax_of_channels(x: Tensor) -> Tensor:
    return torch.softmax(x, 1)


def block_scales_and_their_largest(x: Tensor) -> tuple[Tensor, ...]:
    """Scale blocks of 16, and the scales of a row by their largest."""
    blocks = x.unflatten(-1, (-1, 16))
    scales = blocks.abs().amax(-1)
    largest = scales.amax(-1, keepdim=True)
    return (blocks / scales.unsqueeze(-1)).flatten(-2), scales / largest, largest


def variance_of_means(x: Tensor) -> Tensor:
    """Scale a row by the variance of the means of its groups."""
    means = x.unflatten(-1, (-1, 64)).mean(-1)
    return x * torch.rsqrt(means.var(-1, keepdim=True) + 1e-5)


def _split(name: str, function: Callable, full: Sizes, small: Sizes, inductor: int = 3) -> Pattern:
    return Pattern(name, function, full, small, inductor=inductor, bridge=1, reached=1, dynamic=False)


_SQUARE = sizes(4096, (ROWS, 1024), (1024, ROWS)), sizes(48, (ROWS, 512), (512, ROWS))
_CHANNELS = sizes(8, (ROWS, 768, 512)), sizes(2, (ROWS, 768, 33))
_ROWS = sizes(4096, (ROWS, 4096)), sizes(5, (ROWS, 512))

SPLIT = [
    _split("rmsnorm_transposed_sum", norm_of_transposed_sum, *_SQUARE),
    _split("softmax_transposed_product", softmax_of_transposed_product, *_SQUARE),
    _split("layernorm_transposed_sum", layer_norm_of_transposed_sum, *_SQUARE),
    _split("layernorm_channels_gelu", layer_norm_of_channels, *_CHANNELS),
    _split("rmsnorm_channels", norm_of_channels, *_CHANNELS),
    _split("softmax_channels", softmax_of_channels, *_CHANNELS),
    _split("scales_of_scales", block_scales_and_their_largest, *_ROWS, inductor=2),
    _split("variance_of_means", variance_of_means, *_ROWS),
]
