"""The functions that the benchmarks measure: name -> function and the inputs it is run on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class Pattern:
    """A function and a maker of its inputs: `make(rows, columns, dtype, device)`.

    columns: row widths it is measured at; traffic: minimum bytes moved, from (rows, columns, itemsize).
    """

    name: str
    function: Callable
    make: Callable
    columns: tuple[int, ...]
    traffic: Callable[[int, int, int], int]
    tags: frozenset[str] = field(default_factory=frozenset)


def swiglu_norm(x, residual, weight, eps=1e-6):
    """RMSNorm + residual + chunk + SwiGLU: the function of the project's RFC."""
    x = x + residual
    variance = x.pow(2).mean(-1, keepdim=True)
    x_normed = x * torch.rsqrt(variance + eps) * weight
    gate, up = x_normed.chunk(2, dim=-1)
    return F.silu(gate) * up


def _rows_and_weight(rows: int, columns: int, dtype: torch.dtype, device: str) -> list[torch.Tensor]:
    def draw(*shape):
        return torch.randn(*shape, device=device, dtype=torch.float32).to(dtype)

    return [draw(rows, columns), draw(rows, columns), draw(columns)]


PATTERNS = [
    Pattern(
        "rmsnorm_residual_chunk_swiglu",
        swiglu_norm,
        _rows_and_weight,
        (4096, 5120, 8192),
        # Reads x and residual, writes half a row.
        lambda rows, columns, itemsize: int(2.5 * rows * columns * itemsize),
    ),
]
