"""Test what kept kernels apart where sizes are symbols, and not where they are numbers."""

from __future__ import annotations

import pytest
import torch
from emitted import run_emitted
from functions import norm

import bridge
from bridge.backend import bridge as bridge_backend


def made(*shapes, dynamic):
    """Return random tensors of which each has its own symbols for the dimensions `dynamic`."""
    generator = torch.Generator().manual_seed(0)
    tensors = [torch.randn(shape, generator=generator) for shape in shapes]
    for tensor, axes in zip(tensors, dynamic, strict=True):
        for axis in axes:
            torch._dynamo.mark_dynamic(tensor, axis)
    return tensors


def mixed_heads(scores, weights):
    """Return scores whose heads are mixed after the softmax."""
    return torch.einsum("bhij,hg->bgij", scores.softmax(-1), weights)


@pytest.mark.parametrize("batch", [2, 3, 7])
def test_scores_of_a_symbolic_number_of_images_were_stored_in_the_order_of_queries(batch):
    """Check that the heads, which are neighbours in what a product reads, follow each other in the rows of a kernel."""
    inputs = made((batch, 16, 32, 64), (16, 16), dynamic=[(0,), ()])
    result, (code,) = run_emitted(mixed_heads, inputs, bridge_backend, dynamic=None)
    torch.testing.assert_close(result.double(), mixed_heads(*[x.double() for x in inputs]), rtol=1e-4, atol=1e-5)
    assert code.count(".run(") == 1, bridge.report()
