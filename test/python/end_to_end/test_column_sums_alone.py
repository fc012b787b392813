"""Test sums over one tile that no kernel of its rows waits for: one kernel reads the tile once for all of them."""

from __future__ import annotations

import functools

import pytest
import torch
from column_tests import decisions

import bridge
from bridge import offline
from bridge.backend import bridge as backend
from bridge.offline.interpret import interpreter


def of_images_and_all(x, g):
    """Compute gradients of a scale and of a response of each image (ConvNeXt V2): Inductor splits only one sum."""
    return (g * x).sum((0, 1)), (x.float() * g * x).sum(1).to(x.dtype)


def of_images(x, g):
    """Compute one sum alone, which shares no reads with another."""
    return (x.float() * g * x).sum(1)


@pytest.mark.parametrize(("function", "before", "after"), [(of_images_and_all, 3, 3), (of_images, 1, 1)])
def test_sums_of_columns_are_one_kernel_without_one_of_rows(function, before, after):
    """Check that two sums over one tile become one kernel where no kernel stores rows of the tile.

    Both read the tile, 147 MB; the graph's peak of memory is elsewhere.
    """

    def beside(x, g, y):
        return function(x, g), y @ y @ y

    inputs = [torch.empty(shape, dtype=torch.bfloat16) for shape in (*[(32, 3136, 384)] * 2, (4096, 4096))]
    found = []
    for compile_fx in (None, functools.partial(backend, options={"strict": True})):
        torch._dynamo.reset()
        found.append(offline.compile_for_gpu(beside, inputs, compile_fx=compile_fx).n_kernels)
    assert found == [before, after], bridge.report()
    report = bridge.report()
    assert len(decisions()) == (function is of_images_and_all)
    if decisions():
        assert report.bytes_after < 0.6 * report.bytes_before and report.peak_after <= report.peak_before


@pytest.mark.parametrize("shape", [(4, 64, 32), (4, 36, 40)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_numbers_of_sums_without_rows(few_processors, as_if_large, shape, dtype):
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator).to(dtype) for _ in range(2)]
    torch._dynamo.reset()
    options = {"strict": True, "force_fusion": True}
    with interpreter():
        found = torch.compile(of_images_and_all, backend="bridge", dynamic=False, options=options)(*inputs)
    assert len(decisions()) == 1, bridge.report().details()
    exact, eager = (of_images_and_all(*given) for given in ([tensor.double() for tensor in inputs], inputs))
    for one, other, theirs in zip(found, exact, eager, strict=True):
        error, allowed = ((each.double() - other).abs().max() for each in (one, theirs))
        assert one.dtype == dtype and error <= 2 * allowed + 1e-4


def reversed_times(x, g):
    h = torch.softmax(x, -1)
    total = (h * g).sum(0)
    return h, total.flip(-1) * total


def reversed_of_another(x, g):
    """Multiply a sum of columns by the reverse of another; the second sum and the product may be one kernel already."""
    h = torch.softmax(x, -1)
    return h, (h * x).sum(0).tanh() * (h * g).sum(0).flip(-1)


def scales_of_groups(x, g):
    """Multiply sums by themselves with groups and columns exchanged, of which there are equally many."""
    h = torch.softmax(x, -1)
    scales = (h * g).sum(1)
    return h, scales.t() * scales


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (reversed_times, (75, 24)),
        (reversed_of_another, (75, 24)),
        (scales_of_groups, (24, 160, 24)),
    ],
)
def test_what_reads_a_sum_at_other_columns_is_not_in_its_kernel(few_processors, as_if_large, function, shape):
    """Check that a node that reads a sum at other columns is not in the sum's kernel.

    It has as many elements as the sum, so each lane took its own element for another: errors of twice the numbers.
    """
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator) for _ in range(2)]
    torch._dynamo.reset()
    options = {"strict": True, "force_fusion": True}
    with interpreter():
        found = torch.compile(function, backend="bridge", dynamic=False, options=options)(*inputs)
    assert len(decisions()) == 1, bridge.report().details()
    for one, exact in zip(found, function(*(tensor.double() for tensor in inputs)), strict=True):
        torch.testing.assert_close(one.double(), exact, rtol=1e-5, atol=1e-5)
