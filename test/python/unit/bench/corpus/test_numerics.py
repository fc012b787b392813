"""Test errors of the results of patterns."""

from __future__ import annotations

import pytest
import torch

from bridge.bench.corpus import numerics


def test_the_reference_is_computed_in_double():
    def program(x):
        half = torch.ops.prims.convert_element_type.default(x, torch.bfloat16)
        return torch.ops.prims.convert_element_type.default(half, torch.float32).sum(), x.add_(1)

    x = torch.full((1000,), 1.001)
    total, changed, also_changed = numerics.in_double(program, [x])
    assert total.dtype is torch.float64 and abs(total.item() - 1000 * x[0].item()) < 1e-9
    assert torch.equal(changed, also_changed)


def test_errors_are_those_of_finite_values():
    nan, inf = float("nan"), float("inf")
    expected = torch.tensor([3.0, 4.0, nan, inf])
    assert numerics.error(torch.tensor([3.0, 4.5, nan, inf]), expected) == pytest.approx(0.1)
    assert numerics.error(torch.tensor([3.0, 4.0, 0.0, inf]), expected) == inf
    assert numerics.error(torch.tensor([nan, 4.0, nan, inf]), expected) == inf


def test_an_error_may_be_inductors_and_half_more():
    assert numerics.too_far([1.4e-3, 1.6e-3, 1e-7], [1e-3, 1e-3, 0.0], [1e-6] * 3) == [1]
