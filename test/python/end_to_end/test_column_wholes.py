"""Test sums of all elements in the kernel of the rows whose columns are added up.

Gradients of scales of one element.
"""

from __future__ import annotations

import functools

import pytest
import torch
from column_tests import TRAINING, beside_product, decisions, leaf
from torch._inductor.choices import InductorChoices
from training import count, graphs

import bridge
from bridge.horizontal.column_wholes import find_with_wholes
from bridge.offline.interpret import interpreter
from bridge.scheduling import columns


def dynamic_tanh(x, scale, weight, bias, up):
    """Apply DyT before a gate: the gradient of x is in one kernel with the sum of all elements for `scale`."""
    return (torch.tanh(scale * x) * weight + bias) * torch.nn.functional.silu(up)


def dynamic_erf(x, scale, shift, weight, bias):
    """Apply Derf, whose gradients have two sums of all elements."""
    return torch.erf(scale * x + shift) * weight + bias


def affine(x, scale, bias):
    """Scale and shift all elements: the loops of the gradient's sum go over all elements, without rows."""
    return x * scale + bias


@pytest.mark.parametrize(
    ("function", "shapes", "kernels"),
    [
        (dynamic_tanh, [(8192, 4096), (1,), (4096,), (4096,), (8192, 4096)], "3"),
        (dynamic_erf, [(8192, 4096), (1,), (1,), (4096,), (4096,)], "3"),
        (dynamic_erf, [(4, 2048, 4096), (1,), (1,), (4096,), (4096,)], "3"),
    ],
)
def test_a_sum_of_all_elements_is_in_the_kernel_of_its_rows(function, shapes, kernels):
    """Check that a sum of all elements is in the kernel of its rows.

    Inductor divides it into parts that are no rows, so all inputs of the gradients were read twice.
    """
    inputs = [leaf(*shape) for shape in (*shapes, (16384, 16384))]
    _, backward = graphs(functools.partial(beside_product, function), inputs, TRAINING)
    assert count(backward) == kernels, bridge.report().details()
    assert len(decisions()) == 1
    assert bridge.report().peak_after <= bridge.report().peak_before


def gradients(function, inputs):
    leaves = [tensor.detach().requires_grad_() for tensor in inputs]
    result = function(*leaves)
    return result, *torch.autograd.grad(result.square().sum(), leaves)


@pytest.fixture
def every_sum_is_split(few_processors, monkeypatch):
    """Make Inductor split sums of all elements too, in parts that its kernel shares with the gradients beside them."""
    split = staticmethod(lambda device, rows, columns, inner_reduction: 8 if columns == 1 or not inner_reduction else 1)
    monkeypatch.setattr(InductorChoices, "reduction_split_factor", split)


@pytest.mark.parametrize(("function", "small"), [(dynamic_tanh, "1wwx"), (dynamic_erf, "11ww"), (affine, "1w")])
@pytest.mark.parametrize("shape", [(96, 48), (104, 40), (4, 24, 40)])
def test_numbers_of_sums_of_all_elements(every_sum_is_split, as_if_large, monkeypatch, function, small, shape):
    generator = torch.Generator().manual_seed(0)
    sizes = {"1": (1,), "w": shape[-1:], "x": shape}
    inputs = [torch.randn(size, generator=generator) for size in (shape, *(sizes[kind] for kind in small))]
    seen = []

    def noted(*args):
        seen.append(find_with_wholes(*args))
        return seen[-1]

    monkeypatch.setattr(columns, "find_with_wholes", noted)
    torch._dynamo.reset()
    with interpreter():
        options = {"training": True, "strict": True, "force_fusion": True, "max_nodes": 1}  # no groups
        found = gradients(torch.compile(function, backend="bridge", dynamic=False, options=options), inputs)
    assert len(decisions()) == 1, bridge.report().details()
    assert any(one is not None and one[1].wholes for one in seen)
    for one, other in zip(found, gradients(function, [tensor.double() for tensor in inputs]), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-4)
