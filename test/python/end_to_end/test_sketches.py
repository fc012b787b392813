"""Test what the models of docs/models.md leave apart, by class, as sketches.

Launches at full size, numerics at a small one.

What is not reached yet stands here with its number, too: fewer launches are progress, to be written down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from emitted import run_emitted
from functions import weighted_norm as rms

from bridge import offline
from bridge.backend import bridge as bridge_backend


def rotate(x):
    first, second = x.chunk(2, -1)
    return torch.cat([-second, first], -1)


def rope(x, cos, sin):
    return x * cos + rotate(x) * sin


def interleaved_rope(x, cos, sin):
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


def heads(x, size):
    return x.unflatten(-1, (-1, size)).transpose(0, 1)


def repeated(x, times):
    return x[:, None].expand(-1, times, -1, -1).reshape(-1, *x.shape[1:])


def residual_chain(x, weight, *projections):
    """Sketch class 1: the j-th norm would read j addends; every other sum is stored (test_store_reread.py)."""
    for projection in projections:
        x = x + rms(x, weight) @ projection
    return rms(x, weight)


def partial_rotation(q, k, v, cos, sin):
    """Sketch class 2: GPT-NeoX turns a part of each head, and attention wants both parts in one buffer."""
    width = cos.shape[-1]
    q, k = (torch.cat([rope(t[..., :width], cos, sin), t[..., width:]], -1) for t in (q, k))
    return (q @ k.transpose(-1, -2)).softmax(-1) @ v


def norm_into_windows(x, weight, bias, projection):
    """Sketch class 3: LayerNorm, roll, partition into windows of seven."""
    h = F.layer_norm(x, x.shape[-1:], weight, bias).roll((-3, -3), (1, 2))
    h = h.unflatten(1, (-1, 7)).unflatten(3, (-1, 7)).transpose(2, 3)
    return h.reshape(-1, x.shape[-1]) @ projection


def from_windows(windows, side):
    """Return the square images that a batch of windows of seven was cut from."""
    return windows.unflatten(0, (-1, side // 7, side // 7)).transpose(2, 3).reshape(-1, side, side, windows.shape[-1])


def rolled_norm(x, weight, bias):
    """Sketch class 3 where the rows have another order and the loops the same extents."""
    return F.layer_norm(x, x.shape[-1:], weight, bias).roll((3, 3), (1, 2))


def windows_into_windows(x, windows, weight, bias, projection):
    """Sketch class 3 a block later: the normed sum is rolled and cut anew, and an addend came in windows."""
    return norm_into_windows(x + from_windows(windows, x.shape[1]), weight, bias, projection)


def windows_of_a_stored_sum(x, windows, weight, bias, projection):
    """Sketch class 3 where the sum is needed once more after the attention."""
    total = x + from_windows(windows, x.shape[1])
    return total, norm_into_windows(total, weight, bias, projection)


def merged_patches(x, y, z, windows, more, weight, bias, projection):
    """Merge 2 x 2 tokens side by side into one, of a sum that Inductor stores for its four readers."""
    side = round(x.shape[1] ** 0.5)
    rolled = from_windows(more, side).roll((3, 3), (1, 2))
    h = x + y + z + from_windows(windows, side).flatten(1, 2) + rolled.flatten(1, 2)
    h = h.unflatten(1, (side, side))
    merged = torch.cat([h[:, i::2, j::2] for j in (0, 1) for i in (0, 1)], -1).flatten(1, 2)
    return F.layer_norm(merged, merged.shape[-1:], weight, bias) @ projection


def padded_windows(x, weight, bias, projection, shift):
    """Sketch class 4: windows as in class 3, for a side that is no multiple of seven, padded and later cut."""
    side, padding = x.shape[1], -x.shape[1] % 7
    h = F.pad(F.layer_norm(x, x.shape[-1:], weight, bias), (0, 0, 0, padding, 0, padding))
    windows = h.unflatten(1, (-1, 7)).unflatten(3, (-1, 7)).transpose(2, 3)
    out = torch.addmm(shift, windows.reshape(-1, x.shape[-1]), projection).view(windows.shape)
    return x + out.transpose(2, 3).reshape(h.shape)[:, :side, :side]


def padded_softmax(scores, bias, values):
    """Sketch class 5: rows and columns padded to a multiple of eight."""
    padding = -scores.shape[-1] % 8
    wide = (scores + bias).double() if scores.dtype == torch.float64 else (scores + bias).float()
    return torch.bmm(F.pad(wide.softmax(-1).to(scores.dtype), (0, padding, 0, padding)), values)


def rotated_and_repeated(x, wq, wk, wv, gq, gk, cos, sin):
    """Sketch class 7: the norm of each head, its rotation, and key and value heads repeated for the query heads."""
    size = gq.shape[0]
    q, k, v = rope(rms(heads(x @ wq, size), gq), cos, sin), rope(rms(heads(x @ wk, size), gk), cos, sin), x @ wv
    times = q.shape[0] // k.shape[0]
    return q.contiguous(), repeated(k, times), repeated(heads(v, size), times)


def latent_split(x, projection, weight, cos, sin):
    """Sketch class 9: two slices of one row, one normed and one rotated."""
    latent, position = (x @ projection).split([weight.shape[0], 2 * cos.shape[-1]], -1)
    return rms(latent, weight), interleaved_rope(position, cos, sin)


def last_row(x, residual, weight, projection):
    """Sketch class 11: of the norm of all rows only the last is used, and computed (test_shrink_domains.py)."""
    return rms(x + residual, weight)[-1:] @ projection


@dataclass(frozen=True)
class Sketch:
    """Hold a function, its inputs' shapes at full and small size, and its launches: Inductor's and Bridge's."""

    function: Callable
    full: tuple[tuple[int, ...], ...]
    small: tuple[tuple[int, ...], ...]
    inductor: int
    bridge: int


def rotated_neighbours_of_a_part(x, residual, weight, cos, sin):
    """Sketch class 2 with neighbours among the first elements of a row rotated; the rest of the row stays."""
    h = x + residual
    n, width = rms(h, weight), 2 * cos.shape[-1]
    return torch.cat([interleaved_rope(n[..., :width], cos, sin), n[..., width:]], -1), h


def rotated_neighbours_at_the_end(x, residual, weight, cos, sin):
    """Sketch class 2 with neighbours among the last elements of heads rotated."""
    h = x + residual
    n, width = rms(h, weight), 2 * cos.shape[-1]
    rotated = interleaved_rope(n[..., -width:], cos[:, None], sin[:, None])
    return torch.cat([n[..., :-width], rotated], -1), h


def all_heads_normed_and_rotated_in_part(x, weight, cos, sin):
    """Normalise the whole row and then rotate the first half of each head, as MiniMax-M2 does."""
    rotated, rest = rms(x, weight).unflatten(-1, (-1, 2 * cos.shape[-1])).chunk(2, -1)
    return torch.cat([rope(rotated, cos, sin), rest], -1).transpose(0, 1).contiguous()


def neighbours_rotated_in_half_of_each_head(x, bias, weight, cos, sin):
    """Rotate the first half of each head in pairs of neighbours, heads first, as GLM-4.5 does."""
    rotated, rest = rms((x + bias).unflatten(-1, (-1, 4 * cos.shape[-1])), weight).chunk(2, -1)
    return torch.cat([interleaved_rope(rotated, cos, sin), rest], -1).transpose(0, 1).contiguous()


def square_blocks(x):
    """Scale square blocks, of which there are as many in a row as one block has rows."""
    blocks = x.unflatten(-1, (-1, 16)).unflatten(0, (-1, 16))
    scale = blocks.abs().amax((1, 3), keepdim=True)
    return (blocks / scale).view(x.shape), scale


def flattened_square_blocks(x):
    """Scale square blocks, and give rows and columns that are whole again, as weights in float8 have them."""
    blocks = x.unflatten(0, (-1, 32)).unflatten(-1, (-1, 32))
    scale = blocks.abs().amax((1, 3), keepdim=True)
    return (blocks / scale).flatten(2).flatten(0, 1), scale[:, 0, :, 0]


S, D = 2048, 4096
SKETCHES = [
    Sketch(residual_chain, ((S, D), (D,), *[(D, D)] * 4), ((6, 64), (64,), *[(64, 64)] * 4), 5, 5),
    Sketch(partial_rotation, ((32, S, 128), (32, S, 128), (32, S, 128), (S, 32), (S, 32)),
           ((2, 5, 32), (2, 5, 32), (2, 5, 32), (5, 8), (5, 8)), 3, 2),
    Sketch(norm_into_windows, ((64, 56, 56, 96), (96,), (96,), (96, 288)), ((1, 14, 14, 24), (24,), (24,), (24, 8)),
           2, 1),
    Sketch(rolled_norm, ((64, 28, 28, 384), (384,), (384,)), ((2, 5, 5, 24), (24,), (24,)), 2, 1),
    Sketch(windows_into_windows, ((64, 28, 28, 192), (1024, 7, 7, 192), (192,), (192,), (192, 576)),
           ((1, 14, 14, 24), (4, 7, 7, 24), (24,), (24,), (24, 8)), 3, 1),
    Sketch(windows_of_a_stored_sum, ((64, 28, 28, 192), (1024, 7, 7, 192), (192,), (192,), (192, 576)),
           ((1, 14, 14, 24), (4, 7, 7, 24), (24,), (24,), (24, 8)), 2, 1),
    Sketch(merged_patches, (*[(64, 784, 192)] * 3, *[(1024, 7, 7, 192)] * 2, (768,), (768,), (768, 384)),
           (*[(1, 196, 24)] * 3, *[(4, 7, 7, 24)] * 2, (96,), (96,), (96, 8)), 6, 2),
    Sketch(padded_windows, ((64, 53, 53, 96), (96,), (96,), (96, 96), (96,)),
           ((1, 10, 10, 24), (24,), (24,), (24, 24), (24,)), 4, 2),
    Sketch(padded_softmax, ((12288, 49, 49), (49, 49), (12288, 56, 32)), ((3, 13, 13), (13, 13), (3, 16, 8)), 2, 1),
    Sketch(rotated_and_repeated, ((S, D), (D, D), (D, 1024), (D, 1024), (128,), (128,), (S, 128), (S, 128)),
           ((5, 64), (64, 128), (64, 64), (64, 64), (32,), (32,), (5, 32), (5, 32)), 4, 2),
    Sketch(latent_split, ((S, 7168), (7168, 576), (512,), (S, 32), (S, 32)),
           ((5, 64), (64, 80), (64,), (5, 8), (5, 8)), 2, 1),
    Sketch(rotated_neighbours_of_a_part, (*[(S, 256)] * 2, (256,), (S, 32), (S, 32)),
           (*[(5, 24)] * 2, (24,), (5, 4), (5, 4)), 3, 1),
    Sketch(rotated_neighbours_at_the_end, (*[(S, 32, 192)] * 2, (192,), (S, 32), (S, 32)),
           (*[(5, 2, 24)] * 2, (24,), (5, 4), (5, 4)), 3, 1),
    Sketch(all_heads_normed_and_rotated_in_part, ((S, 6144), (6144,), (S, 1, 64), (S, 1, 64)),
           ((5, 48), (48,), (5, 1, 8), (5, 1, 8)), 3, 1),
    Sketch(neighbours_rotated_in_half_of_each_head, ((S, 12288), (12288,), (128,), (S, 1, 32), (S, 1, 32)),
           ((5, 64), (64,), (16,), (5, 1, 4), (5, 1, 4)), 3, 1),
    Sketch(square_blocks, ((S, 256),), ((32, 256),), 2, 1),
    Sketch(flattened_square_blocks, ((S, D),), ((64, 128),), 2, 1),
    Sketch(last_row, ((S, D), (S, D), (D,), (D, 1024)), ((6, 64), (6, 64), (64,), (64, 32)), 1, 1),
]  # fmt: skip

every_sketch = pytest.mark.parametrize("sketch", SKETCHES, ids=lambda sketch: sketch.function.__name__)


@pytest.mark.one_in(3)
@every_sketch
def test_launches(sketch):
    inputs = [torch.empty(shape, dtype=torch.bfloat16) for shape in sketch.full]
    assert offline.compile_for_gpu(sketch.function, inputs, compile_fx=bridge_backend).n_kernels == sketch.bridge
    assert sketch.bridge <= sketch.inductor


@pytest.mark.one_in(4)
@every_sketch
def test_numerics(sketch):
    """Check the code for a GPU, run by Triton's interpreter, against float64."""
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator) for shape in sketch.small]
    results, _ = run_emitted(sketch.function, inputs, bridge_backend)
    expected = sketch.function(*[t.double() for t in inputs])
    results, expected = ([r] if isinstance(r, torch.Tensor) else r for r in (results, expected))
    for result, reference in zip(results, expected, strict=True):
        difference = (result.double() - reference).norm() / reference.norm()
        assert difference < 1e-5
