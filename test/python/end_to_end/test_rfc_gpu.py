"""Test the RFC's function on a real GPU: kernel counts and numerics.  Skipped where there is none."""

from __future__ import annotations

import math

import pytest
import torch
from rfc import errors_against_float64, make_inputs, swiglu_norm

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

DTYPES = [torch.bfloat16, torch.float16, torch.float32]


def triton_kernels(backend, inputs, dynamic: bool) -> tuple[torch.Tensor, int]:
    """Return (result, number of Triton kernels launched by the generated wrapper)."""
    from torch._inductor.utils import run_and_get_code

    torch._dynamo.reset()
    if dynamic:
        for tensor in inputs[:2]:
            torch._dynamo.mark_dynamic(tensor, 0)
    with torch.no_grad():
        result, (code,) = run_and_get_code(torch.compile(swiglu_norm, backend=backend), *inputs)
    return result, code.count(".run(")


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("columns", [4096, 5120, 8192])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_kernel_where_inductor_has_two(dtype, columns, dynamic):
    from bridge.backend import bridge

    inputs = make_inputs(64, columns, dtype, "cuda")
    assert triton_kernels("inductor", inputs, dynamic)[1] == 2
    assert triton_kernels(bridge, inputs, dynamic)[1] == 1


@pytest.mark.parametrize("rows", [1, 7, 64, 2048])
@pytest.mark.parametrize("columns", [4096, 5120, 8192])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_error_is_at_most_inductors(dtype, columns, rows):
    """Check errors over several draws: with few rows, one draw depends on the last bit of a row's mean."""
    from bridge.backend import bridge

    draws = [make_inputs(rows, columns, dtype, "cuda", seed) for seed in range(16)]
    theirs, ours = (results(backend, draws) for backend in ("inductor", bridge))
    ratios = []
    for inputs, their, our in zip(draws, theirs, ours, strict=True):
        error_theirs, error_ours = errors_against_float64(inputs, their, our)
        ratios.append(error_ours / error_theirs)
    assert math.prod(ratios) ** (1 / len(ratios)) <= 1.05


def results(backend, draws: list) -> list[torch.Tensor]:
    torch._dynamo.reset()
    compiled = torch.compile(swiglu_norm, backend=backend)
    with torch.no_grad():
        return [compiled(*inputs) for inputs in draws]
