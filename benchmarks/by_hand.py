"""Hold RMSNorm + residual + chunk + SwiGLU as written by hand, for benchmarks/gpu.py.

One program has a row: it loads all of it, and then both halves again.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(
    x: tl.tensor,
    residual: tl.tensor,
    weight: tl.tensor,
    out: tl.tensor,
    width: tl.constexpr,
    eps: tl.constexpr,
    ROW: tl.constexpr,
    HALF: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, ROW)
    mask = columns < width
    whole = tl.load(x + row * width + columns, mask, other=0.0).to(tl.float32)
    whole += tl.load(residual + row * width + columns, mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(whole * whole) / width + eps)

    half: tl.constexpr = width // 2
    columns = tl.arange(0, HALF)
    mask = columns < half
    gate = tl.load(x + row * width + columns, mask, other=0.0).to(tl.float32)
    gate += tl.load(residual + row * width + columns, mask, other=0.0).to(tl.float32)
    gate *= scale * tl.load(weight + columns, mask, other=0.0).to(tl.float32)
    up = tl.load(x + row * width + half + columns, mask, other=0.0).to(tl.float32)
    up += tl.load(residual + row * width + half + columns, mask, other=0.0).to(tl.float32)
    up *= scale * tl.load(weight + half + columns, mask, other=0.0).to(tl.float32)
    tl.store(out + row * half + columns, gate * tl.sigmoid(gate) * up, mask)


def swiglu_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Return the gated norm of (rows, width) tensors, as (rows, width / 2)."""
    rows, width = x.shape
    out = torch.empty(rows, width // 2, dtype=x.dtype, device=x.device)
    row = triton.next_power_of_2(width)
    warps = min(16, max(4, row // 512))
    _kernel[(rows,)](x, residual, weight, out, width, eps, row, triton.next_power_of_2(width // 2), num_warps=warps)
    return out
