"""Hold functions that many tests compile, and an input for them."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def norm(x: torch.Tensor, weight: torch.Tensor | None = None) -> torch.Tensor:
    """Return the RMSNorm of the rows, computed in their dtype."""
    normed = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    return normed if weight is None else normed * weight


def weighted_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return the RMSNorm of the rows, computed in float32 at least, and rounded before the weights."""
    wide = x if x.dtype == torch.float64 else x.float()
    return norm(wide).to(x.dtype) * weight


def gate(x: torch.Tensor) -> torch.Tensor:
    """Return a gated RMSNorm, half as wide as the input: two kernels with Inductor, one with Bridge."""
    first, second = norm(x).chunk(2, -1)
    return F.silu(first) * second


def rows(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return `gate` in a tuple: Inductor leaves its loops apart, as their extents differ, and Bridge fuses them."""
    return (gate(x),)


def rotary(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return an RMSNorm plus its rotated halves, as a rotary embedding has them."""
    y = norm(x, weight)
    first, second = y.chunk(2, -1)
    return y * 0.5 + torch.cat([-second, first], -1)


def plain(x: torch.Tensor) -> torch.Tensor:
    """Return a function of each element, which leaves nothing to fuse."""
    return torch.relu(x) * 2 + 1


def sample() -> torch.Tensor:
    """Return an input for `rows` and `plain`: 32 rows of 64 elements, always the same."""
    return torch.arange(32 * 64, dtype=torch.float32).reshape(32, 64).sin()
