"""Test that sums which are the gradients of a parameter's rows are stored where they belong."""

from __future__ import annotations

import functools

import pytest
import torch
from emitted import run_emitted

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend


def changed():
    return bridge.report().counters.get("concatenate_slices", 0)


def placed(sums, dimension, places, length):
    """Add up zeros that have a sum each in a place along a dimension."""
    shape = [*sums[0].shape]
    shape.insert(dimension % (len(shape) + 1), length)
    zeros = sums[0].new_zeros(shape)
    pairs = zip(sums, places, strict=True)
    return functools.reduce(torch.add, [torch.select_scatter(zeros, row, dimension, place) for row, place in pairs])


def sums_of_products(dimension, places, length):
    """Return a function of rows and as many weights, whose products are added up and placed."""

    def function(x, *weights):
        return placed([(x * weight).sum(0) for weight in weights], dimension, places, length)

    return function


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("dimension", "places", "length"),
    [(0, (0, 1), 2), (0, (2, 0, 1), 3), (1, (1, 0), 2), (-1, (-1, 0), 2)],
)
def test_rows_in_their_places(dimension, places, length, dtype):
    generator = torch.Generator().manual_seed(0)
    given = [torch.randn(40, 12, generator=generator).to(dtype) for _ in range(len(places) + 1)]
    function = sums_of_products(dimension, places, length)
    ours, _ = run_emitted(function, given, bridge_backend)
    assert changed() == 1
    torch.testing.assert_close(ours, function(*(one.double() for one in given)).to(dtype))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: placed([(x * w).sum(0), x.sum(0)], 0, (1, 1), 2),
        lambda x, w: placed([x * w, x + w], 0, (0, 1), 2),
        lambda x, w: placed([(x * w).sum(0), x.sum(0)], 0, (0, 2), 3),
    ],
    ids=["one place", "no sums", "an empty place"],
)
def test_others_are_added_up(function):
    """Check that sums of one place, what is no sum, and a tensor with zeros left stay as they are."""
    generator = torch.Generator().manual_seed(0)
    given = [torch.randn(40, 12, generator=generator) for _ in range(2)]
    ours, _ = run_emitted(function, given, bridge_backend)
    assert changed() == 0
    torch.testing.assert_close(ours, function(*given))


def test_no_zero_is_negative():
    """Check that a row of negative zeros is one of zeros, as the sum with others' zeros is."""
    function = sums_of_products(0, (0, 1), 2)
    ours, _ = run_emitted(function, [torch.zeros(40, 12), -torch.ones(40, 12), torch.ones(40, 12)], bridge_backend)
    assert changed() == 1
    assert not ours.signbit().any()


def taps(x, weights):
    """Add up three rows that follow each other, by weights of each column, as a convolution by hand does."""
    padded, rows = torch.nn.functional.pad(x, (0, 0, 2, 0)), x.shape[0]
    return torch.nn.functional.silu(sum(padded[n : rows + n] * weights[n] for n in range(3)))


def test_no_kernel_adds_up_the_gradients_of_taps():
    torch._dynamo.reset()
    inputs = [torch.zeros(8192, 4096, dtype=torch.bfloat16), torch.zeros(3, 4096, dtype=torch.bfloat16)]
    found = offline.compile_for_gpu(taps, inputs, compile_fx=bridge_backend, backward=True)
    assert changed() == 1
    assert not any("select_backward" in str(launch) for graph in found.graphs for launch in graph.launches)
