"""For `bridge bench`: a diffusion transformer with adaLN-Zero blocks.

Peebles and Xie, "Scalable Diffusion Models with Transformers".
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

#: Values of the sinusoidal embedding of a time step, as in the paper's code.
FREQUENCIES = 256


def modulate(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    """Scale and shift the channels; x: (batch, tokens, width); shift, scale: (batch, width)."""
    return x * (1 + scale[:, None]) + shift[:, None]


def embed_time(steps: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn (batch,) into (batch, FREQUENCIES): cosines and sines of geometrically spaced frequencies."""
    half = FREQUENCIES // 2
    frequencies = torch.exp(torch.arange(half, device=steps.device) * (-math.log(10000) / half))
    angles = steps[:, None].float() * frequencies
    return torch.cat([angles.cos(), angles.sin()], -1).to(dtype)


class Block(nn.Module):
    """Compute attention and a perceptron; the condition gives both their shift, scale and gate."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width, eps=1e-6, elementwise_affine=False)
        self.norm2 = nn.LayerNorm(width, eps=1e-6, elementwise_affine=False)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.condition = nn.Linear(width, 6 * width)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        """Return tokens of the shape of x: (batch, tokens, width); condition: (batch, width)."""
        shift1, scale1, gate1, shift2, scale2, gate2 = self.condition(F.silu(condition)).chunk(6, -1)
        x = x + gate1[:, None] * self.attend(modulate(self.norm1(x), shift1, scale1))
        hidden = F.gelu(self.up(modulate(self.norm2(x), shift2, scale2)), approximate="tanh")
        return x + gate2[:, None] * self.down(hidden)

    def attend(self, x: Tensor) -> Tensor:
        """Return the self-attention of x: (batch, tokens, width)."""
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2))


class DiffusionTransformer(nn.Module):
    """Predict the noise in latent images of (batch, channels, size, size) at time steps of (batch,)."""

    def __init__(self, size: int, patch: int, channels: int, width: int, heads: int, depth: int):
        super().__init__()
        self.size, self.patch, self.channels = size, patch, channels
        self.patches = nn.Conv2d(channels, width, patch, stride=patch)
        self.positions = nn.Parameter(0.02 * torch.randn(1, (size // patch) ** 2, width))
        self.time = nn.Sequential(nn.Linear(FREQUENCIES, width), nn.SiLU(), nn.Linear(width, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width, eps=1e-6, elementwise_affine=False)
        self.condition = nn.Linear(width, 2 * width)
        self.noise = nn.Linear(width, patch * patch * channels)

    def forward(self, latents: Tensor, steps: Tensor) -> Tensor:
        """Return the noise in latents of (batch, channels, size, size) at time steps of (batch,)."""
        x = self.patches(latents).flatten(2).transpose(1, 2) + self.positions
        condition = self.time(embed_time(steps, x.dtype))
        for block in self.blocks:
            x = block(x, condition)
        shift, scale = self.condition(F.silu(condition)).chunk(2, -1)
        return self.unpatchify(self.noise(modulate(self.norm(x), shift, scale)))

    def unpatchify(self, x: Tensor) -> Tensor:
        """Turn (batch, tokens, patch * patch * channels) into (batch, channels, size, size)."""
        side = self.size // self.patch
        x = x.unflatten(1, (side, side)).unflatten(-1, (self.patch, self.patch, self.channels))
        return x.permute(0, 5, 1, 3, 2, 4).reshape(-1, self.channels, self.size, self.size)
