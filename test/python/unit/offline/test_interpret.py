"""Test kernels in Triton's interpreter, compared with eager."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from offline_functions import matrix, norm_inputs, norm_to_fp8, to_int8
from rfc import swiglu_norm

from bridge import offline


@pytest.mark.parametrize("dynamic", [False, True])
def test_interpreted_result_agrees_with_eager(dynamic):
    inputs = norm_inputs(6, 512)
    actual = offline.run_interpreted(swiglu_norm, inputs, dynamic=dynamic)
    expected = swiglu_norm(*(tensor.double() for tensor in inputs))
    torch.testing.assert_close(actual.double(), expected, rtol=2e-2, atol=2e-2)


def test_interpreted_fp8_agrees_with_eager():
    inputs = [matrix(6, 512), matrix(1, 512)[0]]
    actual, scale = offline.run_interpreted(norm_to_fp8, inputs)
    expected, expected_scale = norm_to_fp8(*inputs)
    torch.testing.assert_close(scale, expected_scale)
    different = actual.float() != expected.float()
    assert different.float().mean() < 0.01


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    "reduce",
    [
        lambda x: (x.amax(-1), x.amin(-1, keepdim=True), x.amax()),
        lambda x: (x.argmax(-1), x.argmin(0)),
        lambda x: torch.var_mean(x, -1),
        lambda x: ((x > 1).any(-1), (x < 2).all(0)),
        lambda x: torch.cummax(x, -1),
        lambda x: torch.logcumsumexp(x, -1),
    ],
    ids=["extrema", "places", "moments", "truth", "running", "scan"],
)
def test_interpreted_reductions_of_whole_parts_agree_with_eager(reduce):
    """Check reductions of rows with ties and NaN: blocks' parts combine at once, except by functions with `not`."""
    x = matrix(6, 67).mul(4).round()
    x[2, 5] = torch.nan
    for actual, expected in zip(offline.run_interpreted(reduce, [x]), reduce(x), strict=True):
        torch.testing.assert_close(actual, expected, equal_nan=True)


def test_interpreted_int8_agrees_with_eager():
    actual, _ = offline.run_interpreted(to_int8, [matrix(6, 512)])
    expected, _ = to_int8(matrix(6, 512))
    assert (actual.int() - expected.int()).abs().max() <= 1


@pytest.mark.parametrize("fn", [torch.tanh, torch.erf, torch.expm1, torch.round, torch.asinh, torch.isinf])
def test_interpreted_libdevice_functions(fn):
    x = matrix(4, 64, torch.float32)
    torch.testing.assert_close(offline.run_interpreted(fn, [x]), fn(x))


def test_interpreter_emits_triton():
    codes: list[Any] = []
    with offline.interpreter():
        torch._dynamo.reset()
        compiled = torch.compile(lambda x: x.sin() + 1)
        with pytest.MonkeyPatch.context() as patch:
            lowering = torch._inductor.graph.GraphLowering
            patch.setattr(lowering, "save_output_code", staticmethod(codes.append))
            compiled(matrix(4, 64))
    assert "@triton.jit" in codes[0]


def test_cubins_after_the_interpreter():
    """Check that cubins compile after the interpreter, which must leave no patches in ``triton.language``."""
    offline.run_interpreted(swiglu_norm, norm_inputs(4, 64))
    result = offline.compile_for_gpu(swiglu_norm, norm_inputs(64, 4096))
    assert all(offline.compile_kernel(kernel) for kernel in result.kernels)
