"""What stores the rows of a tile in another order goes over them in that of the kernel that adds up their columns."""

from __future__ import annotations

import functools

import torch
from torch._dynamo.utils import counters
from training import count, graphs, rms

import bridge
from bridge.backend import bridge as backend
from bridge.offline.interpret import interpreter

TRAINING = functools.partial(backend, options={"strict": True, "training": True})
FORCED = {"training": True, "strict": True, "force_fusion": True}


def rotated(x, cosine, sine):
    """Rotary embeddings of heads, whose tokens lie one after the other."""
    first, second = x.chunk(2, -1)
    return x * cosine + torch.cat([-second, first], -1) * sine


def normed_heads(x, weight, cosine, sine):
    """The queries of an attention that is a product of matrices, so that its gradients have the tokens of each head."""
    return rotated(rms(x, weight).transpose(1, 2), cosine, sine).contiguous()


def decisions():
    return [line for group in bridge.report().groups for line in group.decisions if line.startswith("rows and columns")]


def test_what_rotates_gradients_back_is_in_the_kernel_of_their_norm():
    """It stored the gradient of each head as float32, and the kernel of the norm went over all heads of a token."""
    x = torch.empty(4, 2048, 32, 128, dtype=torch.bfloat16, requires_grad=True)
    weight = torch.empty(128, dtype=torch.bfloat16, requires_grad=True)
    angles = [torch.empty(2048, 128) for _ in range(2)]
    for tensor, dim in ((x, 1), (angles[0], 0), (angles[1], 0)):
        torch._dynamo.maybe_mark_dynamic(tensor, dim)
    _, backward = graphs(normed_heads, (x, weight, *angles), TRAINING)
    (decision,) = decisions()
    assert "4 launches become 2" in decision and count(backward) == "2", bridge.report().details()


def gradients(function, x, weight, *angles):
    with torch.enable_grad():
        leaves = [tensor.detach().requires_grad_() for tensor in (x, weight)]
        torch._dynamo.maybe_mark_dynamic(leaves[0], 1)
        output = function(*leaves, *angles)
        given = torch.randn(output.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        return [output, *torch.autograd.grad(output, leaves, given.to(output.dtype))]


def test_numbers_of_gradients_in_another_order(few_processors, as_if_large):
    """Of as many tokens as it was compiled for, and of as many as there are heads."""
    torch._dynamo.reset()
    counters.clear()
    with interpreter():
        compiled = torch.compile(normed_heads, backend="bridge", options=FORCED, fullgraph=True)
        for tokens in (25, 3):
            generator = torch.Generator().manual_seed(0)
            shapes = (2, tokens, 3, 32), (32,), (tokens, 32), (tokens, 32)
            inputs = [torch.randn(shape, generator=generator) for shape in shapes]
            for angle in inputs[2:]:
                torch._dynamo.maybe_mark_dynamic(angle, 0)
            exact = gradients(normed_heads, *[tensor.double() for tensor in inputs])
            for one, other in zip(gradients(compiled, *inputs), exact, strict=True):
                torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5)
    assert decisions(), bridge.report().details()
    assert counters["stats"]["unique_graphs"] == 1
