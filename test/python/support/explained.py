"""Hold functions whose explanations the tests know, and a file with some for the command line."""

from __future__ import annotations

import torch


def gated(x):
    """Compute what fuses: a reduction over the row, and its halves."""
    x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    gate, up = x.chunk(2, dim=-1)
    return torch.sigmoid(gate) * up


def halves(x):
    """Compute what fuses where the number of columns is even, which no guard says of a symbolic one."""
    size = x.shape[-1] // 2
    return x[:, :size] * x[:, size : 2 * size] * torch.rsqrt(x.pow(2).sum(-1, keepdim=True))


def next_row(x):
    """Compute what does not fuse: a row needs what was reduced of the row before it."""
    scaled = x / x.sum(-1, keepdim=True)
    return scaled * x.roll(1, 0).sum(-1, keepdim=True).roll(1, 0)


def other_lane(x):
    """Compute what does not fuse: an element needs the maxima of its segment and of one reduced in other lanes."""
    segments = x.unflatten(-1, (-1, 32)).amax(-1)
    return x * segments.repeat_interleave(32, 1) * segments.repeat(1, 32)


def two_orders(x):
    """Compute what does not fuse: 64 sums are read as the rows and as the columns of a square."""
    rows = x.sum(-1).view(8, 8)
    return x.view(8, 8, -1).transpose(0, 1) * rows.t()[..., None] + rows[..., None]


def example_inputs():
    return [torch.randn(64, 1024, generator=torch.Generator().manual_seed(0))]


if __name__ == "__main__":
    with torch.no_grad():
        (x,) = example_inputs()
        torch.testing.assert_close(torch.compile(gated)(x), gated(x))
