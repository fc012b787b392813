"""Test rows that are not reduced, beside sums of their columns: programs have slices of them, without idle lanes."""

from __future__ import annotations

import functools

import pytest
import torch
from column_tests import decisions

import bridge
from bridge import offline
from bridge.backend import bridge as backend
from bridge.inductor import column_slices
from bridge.offline.interpret import interpreter


def tanh_backward(x, g):
    """Compute a gradient whose arithmetic takes longer than its memory accesses, and its sums of columns."""
    t = (0.8 * (x + 0.04 * x * x * x)).tanh()
    h = g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * (0.8 + 0.1 * x * x))
    return h, h.sum(0)


@pytest.mark.parametrize(("columns", "width"), [(3072, 1024), (4096, 1024), (4608, 512), (1152, None)])
def test_rows_that_are_not_reduced_are_in_slices_without_idle_lanes(columns, width):
    """Check that programs take slices of rows that are not reduced, of a width that leaves no lane idle.

    Two products beside them need more memory than the partial sums.
    """

    def beside(x, g, y):
        return *tanh_backward(x, g), (y @ y) @ y

    torch._dynamo.reset()
    inputs = [torch.empty(16384, size, dtype=torch.bfloat16) for size in (columns, columns, 16384)]
    found = offline.compile_for_gpu(beside, inputs, compile_fx=functools.partial(backend, options={"strict": True}))
    assert (found.n_kernels == 2) == (width is not None), bridge.report()
    assert [f"and {width} columns" in line for line in decisions()] == ([True] if width else [])


def biased(x, w, b):
    """Apply a scale and a bias, whose gradients are sums of columns; no row is reduced."""
    return torch.nn.functional.gelu(x * w + b)


def gradients(function, inputs):
    leaves = [tensor.detach().requires_grad_() for tensor in inputs]
    result = function(*leaves)
    return result, *torch.autograd.grad(result.square().sum(), leaves)


@pytest.mark.parametrize("rows", [96, 100])
@pytest.mark.parametrize("columns", [48, 40])
def test_slices_add_up_what_whole_rows_do(few_processors, as_if_large, monkeypatch, rows, columns):
    """Check that slices give the sums that whole rows do.

    The slices are narrow, as for so few multiprocessors Inductor adds up more columns in one stage.
    """
    monkeypatch.setattr(column_slices, "NARROWEST", 8)
    inputs = torch.randn(rows, columns), torch.randn(columns), torch.randn(columns)
    torch._dynamo.reset()
    with interpreter():
        options = {"training": True, "strict": True, "force_fusion": True, "max_nodes": 1}  # no groups
        found = gradients(torch.compile(biased, backend="bridge", dynamic=False, options=options), inputs)
    assert [" columns: " in line for line in decisions()] == [True], bridge.report()
    for one, other in zip(found, gradients(biased, [tensor.double() for tensor in inputs]), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5)
