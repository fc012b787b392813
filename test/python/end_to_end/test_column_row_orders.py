"""Test that what stores a tile's rows in another order goes over them in that of the kernel that sums their columns."""

from __future__ import annotations

import torch
from column_tests import TRAINING, decisions
from torch._dynamo.utils import counters
from training import count, graphs, rms

import bridge
from bridge.offline.interpret import interpreter

FORCED = {"training": True, "strict": True, "force_fusion": True}


def rotated(x, cosine, sine):
    """Apply rotary embeddings to heads; the tokens of a head are adjacent in memory."""
    first, second = x.chunk(2, -1)
    return x * cosine + torch.cat([-second, first], -1) * sine


def normed_heads(x, weight, cosine, sine):
    """Compute the queries of an attention that is a matrix product; their gradients have the tokens of each head."""
    return rotated(rms(x, weight).transpose(1, 2), cosine, sine).contiguous()


def test_what_rotates_gradients_back_is_in_the_kernel_of_their_norm():
    """Check that the rotation of gradients, which goes by heads, is in the kernel of their norm, which goes by tokens.

    The rotation stored the gradient of each head as float32, and the norm's kernel went over all heads of a token.
    """
    x = torch.empty(4, 2048, 32, 128, dtype=torch.bfloat16, requires_grad=True)
    weight = torch.empty(128, dtype=torch.bfloat16, requires_grad=True)
    angles = [torch.empty(2048, 128) for _ in range(2)]
    _, backward = graphs(normed_heads, (x, weight, *angles), TRAINING)
    (decision,) = decisions()
    assert "4 launches become 2" in decision and count(backward) == "2", bridge.report().details()


def turned_heads(gradient, x):
    """Store a rolled tensor with the tokens of each head, and add it up with the heads of each token, as `x` is."""
    stored = torch.sin(torch.roll(gradient, 1, -1))
    turned = stored.transpose(1, 2) * x
    return stored, turned * turned.sum(-1, keepdim=True), turned.flatten(0, 2).sum(0)


def test_numbers_of_rows_in_another_order(few_processors, as_if_large):
    """Check results for the number of tokens compiled for, and for as many tokens as heads: no block is full."""
    torch._dynamo.reset()
    counters.clear()
    with interpreter(), torch.no_grad():
        compiled = torch.compile(turned_heads, backend="bridge", options=FORCED, fullgraph=True)
        for tokens in (25, 3):
            generator = torch.Generator().manual_seed(0)
            shapes = (2, 3, tokens, 32), (2, tokens, 3, 32)
            inputs = [torch.randn(shape, generator=generator) for shape in shapes]
            for tensor, dim in zip(inputs, (2, 1), strict=True):
                torch._dynamo.mark_dynamic(tensor, dim)
            exact = turned_heads(*[tensor.double() for tensor in inputs])
            for one, other in zip(compiled(*inputs), exact, strict=True):
                torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5)
    (decision,) = decisions()
    assert "4 launches become 2" in decision, bridge.report().details()
    assert counters["stats"]["unique_graphs"] == 1
