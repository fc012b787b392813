"""Test sums over rows that are far apart, as over the sequences of a batch.

They end in the kernel that has those rows.
"""

from __future__ import annotations

import functools

import pytest
import torch
from column_tests import TRAINING, beside_product, decisions, leaf
from training import count, graphs

import bridge
from bridge.offline.interpret import interpreter


def biased(scores, bias):
    """Compute attention with a bias that all sequences of the batch share."""
    return torch.softmax(scores + bias, -1)


def scaled_bias(scores, pair, mask):
    """Compute the attention of pairs (AlphaFold), with a mask that needs no gradient."""
    return torch.softmax(scores * 0.125 + pair + mask.detach(), -1)


def bounded(scores, bias):
    """Compute attention with a bounded bias: its gradient is computed further after the sum, in the same kernel."""
    return torch.softmax(scores + torch.tanh(bias), -1)


def placed(x, position):
    """Compute a norm of tokens with an embedding of their position."""
    return torch.nn.functional.layer_norm(x + position, x.shape[-1:])


@pytest.mark.parametrize(
    ("function", "shapes", "block"),
    [
        (biased, [(16, 12, 512, 512), (12, 512, 512)], 16),
        (scaled_bias, [(64, 32, 256, 256), (1, 32, 256, 256), (64, 1, 256, 256)], 64),
        (placed, [(32, 1024, 1024), (1024, 1024)], 32),
    ],
)
def test_the_sum_over_a_batch_ends_in_the_kernel_of_its_rows(function, shapes, block):
    """Check that the sum over a batch is in the kernel of its rows: apart, it read the whole gradient once more."""
    inputs = [leaf(*shape) for shape in (*shapes, (16384, 16384))]
    _, backward = graphs(functools.partial(beside_product, function), inputs, TRAINING)
    assert count(backward) == "1", bridge.report().details()
    (decision,) = decisions()
    assert f"blocks of {block} rows: 2 launches become 1" in decision and "0.0 MB of partial sums" in decision
    assert "ws_ptr" not in backward, "nothing is left to add up"
    assert not any(group.done.divided for group in bridge.report().groups)


def convolved(x, weight, bias):
    """Compute a causal convolution of each channel; its four weights are adjacent in memory."""
    padded = torch.nn.functional.pad(x, (0, 0, 3, 0))
    return torch.nn.functional.silu(sum(padded[:, i : i + x.shape[1]] * weight[:, i] for i in range(4)) + bias)


def normalised_pixels(x, weight, bias):
    """Compute a layer norm over channels that are stored in planes."""
    centred = x - x.mean(1, keepdim=True)
    scaled = centred / torch.sqrt(centred.pow(2).mean(1, keepdim=True) + 1e-6)
    return scaled * weight[:, None, None] + bias[:, None, None]


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (convolved, [(4, 2048, 1024), (1024, 4), (1024,)]),
        (normalised_pixels, [(32, 96, 56, 56), (96,), (96,)]),
    ],
)
def test_rows_with_scattered_accesses_stay_apart(function, shapes):
    """Check that sums stay apart from rows with scattered accesses.

    Each row of a block waited for such accesses again: on an H100 100 us more than 530, and 47 more than 86.
    """
    graphs(functools.partial(beside_product, function), [leaf(*shape) for shape in (*shapes, (8192, 8192))], TRAINING)
    assert not decisions()
    refused = [detail for group in bridge.report().groups for _, detail in group.apart]
    assert any("launches become 2, which lose" in detail for detail in refused)


def gradients(function, inputs):
    with torch.enable_grad():
        leaves = [tensor.detach().requires_grad_() for tensor in inputs]
        output = function(*leaves)
        weight = torch.randn(output.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        found = torch.autograd.grad(output, leaves, weight.to(output.dtype), allow_unused=True)
        return [output, *(gradient for gradient in found if gradient is not None)]


@pytest.mark.parametrize(
    ("function", "shapes", "dtype"),
    [
        (biased, [(8, 2, 2, 24), (2, 2, 24)], torch.bfloat16),  # a row does not fill its lanes
        (biased, [(10, 1, 4, 640), (1, 4, 640)], torch.float32),  # a group is no power of two
        (biased, [(16, 2, 2, 16), (2, 2, 16)], torch.float32),  # as many rows in a group as columns
        (scaled_bias, [(12, 1, 4, 40), (1, 1, 4, 40), (12, 1, 4, 40)], torch.float32),
        (placed, [(16, 4, 36), (4, 36)], torch.float32),
        (bounded, [(8, 2, 2, 24), (2, 2, 24)], torch.float32),  # a copy of the only part goes on
    ],
)
def test_numbers_of_sums_over_a_batch(few_processors_one_stage, as_if_large, function, shapes, dtype):
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]
    torch._dynamo.reset()
    options = {"training": True, "strict": True, "force_fusion": True, "max_nodes": 1}
    with interpreter():
        found = gradients(torch.compile(function, backend="bridge", dynamic=False, options=options), inputs)
    (decision,) = decisions()
    assert f"blocks of {shapes[0][0]} rows" in decision
    exact, eager = (gradients(function, given) for given in ([tensor.double() for tensor in inputs], inputs))
    for one, other, theirs in zip(found, exact, eager, strict=True):
        error, allowed = ((each.double() - other).abs().max() for each in (one, theirs))
        assert one.dtype == dtype and error <= 2 * allowed + 1e-6
