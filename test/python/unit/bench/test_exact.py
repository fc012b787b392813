"""Test references in float64."""

from __future__ import annotations

import torch

from bridge.bench import exact

WEIGHT = torch.full((4,), 0.1)


def test_every_operation_is_in_float64():
    """Check that every operation is in float64, also on tensors that are no arguments, and after a cast."""

    def function(x):
        half = (x.to(torch.bfloat16) * WEIGHT).float()
        return {"a": half + torch.ones(4, dtype=torch.float16), "b": 3}

    x = torch.full((4,), 1 / 3)
    (result,), how = exact.reference(function, [x])
    assert how == "float64 eager" and result.dtype == torch.float64
    torch.testing.assert_close(result, x.double() * WEIGHT.double() + 1, rtol=1e-15, atol=0)


def test_modules_and_arguments_stay_as_they_were():
    module = torch.nn.BatchNorm1d(4)
    before = module.running_mean.clone()
    x = torch.randn(8, 4)
    (result,), how = exact.reference(module, [x])
    assert how == "float64 eager"
    exactly = x.double()
    variance = exactly.var(0, correction=0)
    torch.testing.assert_close(result, (exactly - exactly.mean(0)) / (variance + module.eps).sqrt())
    assert torch.equal(module.running_mean, before) and module.weight.dtype == torch.float32

    def writes(x):
        return x.add_(1)

    kept = x.clone()
    exact.reference(writes, [x])
    assert torch.equal(x, kept)


def test_what_has_no_float64_is_compared_in_its_own_dtypes():
    def function(x):
        return torch.ops.aten._weight_int8pack_mm(x, torch.ones(4, 4, dtype=torch.int8), torch.ones(4))

    (result,), how = exact.reference(function, [torch.ones(2, 4)])
    assert how == "eager in its own dtypes"
    assert torch.equal(result, torch.full((2, 4), 4.0))


def test_tensors_are_found_wherever_they_are():
    x = torch.ones(2, requires_grad=True)
    (found,) = exact.tensors_of({"a": [x, 3], "b": None})
    assert torch.equal(found, x) and found is not x and not found.requires_grad
