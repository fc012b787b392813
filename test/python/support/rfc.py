"""Hold the function of the project's RFC, its inputs and its reference, for the tests."""

from __future__ import annotations

import torch


def swiglu_norm(x, residual, weight, eps=1e-6):
    """Compute RMSNorm + residual + chunk + SwiGLU; x, residual: (M, N), weight: (N,)."""
    x = x + residual
    variance = x.pow(2).mean(-1, keepdim=True)
    x_normed = x * torch.rsqrt(variance + eps) * weight
    gate, up = x_normed.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * up


def make_inputs(rows: int, columns: int, dtype: torch.dtype, device: str = "cpu", seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(rows * 131 + columns + seed)
    shapes = [(rows, columns), (rows, columns), (columns,)]
    return [torch.randn(*s, generator=generator).to(device=device, dtype=dtype) for s in shapes]


def errors_against_float64(inputs: list[torch.Tensor], *results: torch.Tensor) -> list[float]:
    """Return the relative Frobenius error of each result against eager in float64."""
    reference = swiglu_norm(*[t.double() for t in inputs])
    return [((r.double() - reference).norm() / reference.norm()).item() for r in results]
