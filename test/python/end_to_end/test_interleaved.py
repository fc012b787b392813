"""Test values of several kinds that are stored in turn, `out[..., 0::2]` and `[..., 1::2]`, in the kernel of a norm."""

from __future__ import annotations

import pytest
import torch
from emitted import run_emitted
from programs import wide
from rechecked import check, forced
from torch.nn import functional as F

HEADS, COLUMNS = 12, 128


def sample(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape))).clamp(-2, 2)


def normed(x):
    return (wide(x) * torch.rsqrt(wide(x).pow(2).mean(-1, keepdim=True) + 1e-6)).unflatten(-1, (HEADS, -1))


def times(value, tables):
    """Multiply by so many loads that Inductor stores the product before it is read."""
    first, second, third, fourth = map(wide, tables)
    return value * (first + second * third - fourth)


def stored_in_turn(out, kinds):
    for place, kind in enumerate(kinds):
        out[..., place :: len(kinds)] = kind
    return out


def rotated(x, *tables):
    """Rotate the pairs of each head after a norm over all heads, as diffusers does for Wan and LTX."""
    h = normed(x)
    first, second = h.unflatten(-1, (-1, 2)).unbind(-1)
    cos, sin = ([t[..., part::2] for t in tables] for part in (0, 1))
    kinds = times(first, cos) - times(second, sin), times(first, sin) + times(second, cos)
    return stored_in_turn(torch.empty_like(h), kinds)


def rotated_backwards(x, *tables):
    """Store the odd elements before the even ones."""
    h = normed(x)
    first, second = h.unflatten(-1, (-1, 2)).unbind(-1)
    cos = [t[..., 0::2] for t in tables]
    out = torch.zeros_like(h)
    out[..., 1::2], out[..., 0::2] = times(first, cos) + second, times(second, cos)
    return out


def in_fours(x, *tables):
    h = normed(x)
    parts = h.unflatten(-1, (-1, 4)).unbind(-1)
    kinds = [times(part, [t[..., n::4] for t in tables]) for n, part in enumerate(parts)]
    return stored_in_turn(torch.empty_like(h), [a - b for a, b in zip(kinds, kinds[1:] + kinds[:1], strict=True)])


def some_of_four(x, *tables):
    """Store two of four kinds of elements; the other two stay ones."""
    first, second, *_ = normed(x).unflatten(-1, (-1, 4)).unbind(-1)
    out = torch.ones_like(normed(x))
    out[..., 1::4] = times(first, [t[..., 0::4] for t in tables])
    out[..., 3::4] = times(second, [t[..., 1::4] for t in tables]) + 1
    return out


FUNCTIONS = [rotated, rotated_backwards, in_fours, some_of_four]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_kinds_that_are_stored_in_turn_are_one_kernel(function, dtype):
    inputs = [sample(6, HEADS * COLUMNS), *(sample(6, 1, COLUMNS) * n for n in (1, 2, 3, 4))]
    check(function, [tensor.to(dtype) for tensor in inputs], kernels=1, backend=forced)


def test_the_number_of_rows_may_be_a_symbol():
    x, *tables = [sample(6, HEADS * COLUMNS), *(sample(1, 1, COLUMNS) * n for n in (1, 2, 3, 4))]
    torch._dynamo.mark_dynamic(x, 0)
    check(rotated, [x, *tables], kernels=1, dynamic=None)


def turned_pairs(x, cos, sin):
    """Rotate neighbours, stack them, and place heads before tokens in memory."""
    first, second = x.unflatten(-1, (-1, 2)).unbind(-1)
    pairs = torch.stack([first * cos - second * sin, first * sin + second * cos], -1)
    return pairs.flatten(-2).transpose(1, 2).contiguous()


def query_and_key(x, cos, sin, of_query, of_key):
    """Compute two parts of a fused projection: the norm of each head, and its rotation."""
    query, key, _ = x.chunk(3, 2)
    norms = [F.rms_norm(wide(part), x.shape[-1:]) * by for part, by in ((query, of_query), (key, of_key))]
    return tuple(turned_pairs(part, cos[:, None], sin[:, None]) for part in norms)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_interleaved_pairs_are_one_kernel_with_their_transposed_copies(dtype):
    """Check that interleaved pairs and their transposed copies are one kernel.

    From torch 2.15 on the stacked pieces are stored, and copied in a loop over pairs.
    """
    inputs = [sample(2, 8, 6, 16), sample(8, 8), sample(8, 8) + 1, sample(16), sample(16) + 1]
    check(query_and_key, [tensor.to(dtype) for tensor in inputs], kernels=1)


def gradient_of_gates_in_turn(x, bias, grad):
    """Compute the gradient of clamped gates and values that are stored in turn, as those of gpt-oss."""

    def gated(pairs):
        pairs = pairs + bias
        gate, value = pairs[..., ::2].clamp(max=1.5), pairs[..., 1::2].clamp(-1.5, 1.5)
        return gate * torch.sigmoid(1.702 * gate) * (value + 1)

    return torch.func.vjp(gated, x)[1](grad)[0]


def test_the_gradient_of_odd_elements_was_a_kernel_of_its_own():
    """Check that the gradients of even and odd elements are one kernel, in which one of bfloat16 is rounded."""
    inputs = [tensor.bfloat16() for tensor in (sample(6, 96), sample(1, 96), sample(6, 48))]
    output, (code,) = run_emitted(gradient_of_gates_in_turn, inputs, forced)
    assert code.count("@triton.jit") == 1
    expected = gradient_of_gates_in_turn(*(tensor.double() for tensor in inputs))
    torch.testing.assert_close(output.double(), expected, rtol=0.02, atol=0.02)
