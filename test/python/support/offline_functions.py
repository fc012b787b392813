"""Hold functions that the tests of bridge.offline compile, and their inputs."""

from __future__ import annotations

import torch

ROWS, COLUMNS = 2048, 8192


def norm_to_fp8(x, weight, eps=1e-6):
    x = x.float()
    x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight
    scale = x.abs().amax(-1, keepdim=True) / 448.0
    return (x / scale).to(torch.float8_e4m3fn), scale


def to_int8(x):
    scale = x.abs().amax(-1, keepdim=True).float() / 127.0
    return torch.round(x / scale).to(torch.int8), scale


def matrix(rows, columns, dtype=torch.bfloat16):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(rows, columns, generator=generator).to(dtype)


def norm_inputs(rows=ROWS, columns=COLUMNS, dtype=torch.bfloat16):
    x = matrix(rows, columns, dtype)
    return [x, x.flip(0), matrix(1, columns, dtype)[0]]
