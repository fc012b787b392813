"""Test the RFC's function: one kernel for a GPU that is not there, one loop nest on the CPU, numerics on both."""

from __future__ import annotations

import math
import re

import pytest
import torch
from rfc import errors_against_float64, make_inputs, swiglu_norm
from torch._inductor.utils import run_and_get_code

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.reasons import Reason

DTYPES = [torch.bfloat16, torch.float16, torch.float32]


def compile_offline(dtype, columns, dynamic, backend=None):
    inputs = make_inputs(64, columns, dtype)
    if dynamic:
        for tensor in inputs[:2]:
            torch._dynamo.mark_dynamic(tensor, 0)
    return offline.compile_for_gpu(swiglu_norm, inputs, compile_fx=backend, dynamic=None if dynamic else False)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("columns", [4096, 5120, 8192])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gpu_one_kernel_where_inductor_has_two(dtype, columns, dynamic):
    assert compile_offline(dtype, columns, dynamic).n_kernels == 2
    fused = compile_offline(dtype, columns, dynamic, bridge_backend)
    assert fused.n_kernels == 1
    (group,) = bridge.report().groups
    assert group.fused and (group.kernels_before, group.kernels_after) == (2, 1)


def test_gpu_loads_each_element_once():
    """Check six loads: halves of x, of residual and of the weight, and none of them again in the epilogue."""
    (kernel,) = compile_offline(torch.bfloat16, 8192, False, bridge_backend).kernels
    loads = offline.count_loads(kernel)
    assert sorted(loads.values()) == [2, 2, 2]
    assert list(offline.count_stores(kernel).values()) == [1]
    assert "persistent_reduction" in kernel.source


def test_gpu_looped_kernel_on_request():
    options = {"persistent": False}
    inputs = make_inputs(64, 8192, torch.bfloat16)
    result = offline.compile_for_gpu(
        swiglu_norm, inputs, compile_fx=lambda gm, example: bridge_backend(gm, example, options=options)
    )
    assert result.n_kernels == 1
    assert "persistent_reduction" not in result.kernels[0].source


def test_gpu_rows_that_registers_cannot_hold_stay_apart():
    """Check that rows that registers cannot hold stay apart.

    One kernel would read them twice as Inductor's two do; measured in docs/results.md.
    """
    row = torch.zeros(65536, dtype=torch.bfloat16)
    inputs = [row.expand(1024, -1).contiguous(), row.expand(1024, -1).contiguous(), row]
    assert offline.compile_for_gpu(swiglu_norm, inputs, compile_fx=bridge_backend, dynamic=False).n_kernels == 2
    (group,) = bridge.report().groups
    assert group.reason is Reason.not_profitable and "65536 registers" in group.detail


@pytest.mark.parametrize("columns", [4096, 5120, 8192])
def test_gpu_cubin_without_spills(columns):
    (kernel,) = compile_offline(torch.bfloat16, columns, False, bridge_backend).kernels
    for cubin in offline.compile_kernel(kernel):
        assert cubin.spills == 0


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gpu_kernel_computes_the_function(dtype):
    """Check the results of the Triton kernel itself, in Triton's interpreter."""
    inputs = make_inputs(7, 256, dtype)
    ours = offline.run_interpreted(swiglu_norm, inputs, backend=bridge_backend)
    theirs = offline.run_interpreted(swiglu_norm, inputs)
    error_theirs, error_ours = errors_against_float64(inputs, theirs, ours)
    assert error_ours <= 1.05 * error_theirs


def compile_cpu(backend, dtype, dynamic=False):
    """Return (compiled function, its code); dynamic: for any number of rows."""
    torch._dynamo.reset()
    inputs = make_inputs(16, 8192, dtype)
    if dynamic:
        for tensor in inputs[:2]:
            torch._dynamo.mark_dynamic(tensor, 0)
    with torch.no_grad():
        compiled = torch.compile(swiglu_norm, backend=backend)
        _, (code,) = run_and_get_code(compiled, *inputs)
    return compiled, code


@pytest.mark.one_in(4)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_cpu_one_fused_nest_and_numerics(dtype):
    """Check that the CPU has one fused nest, and errors over several numbers of rows.

    The error of one row depends on the last bit of its mean.
    """
    fused, code = compile_cpu(bridge_backend, dtype, dynamic=True)
    assert bridge.report().groups[0].fused
    assert len(re.findall(r"for\(int64_t x0=", code)) == 1
    plain, _ = compile_cpu("inductor", dtype, dynamic=True)
    ratios = []
    with torch.no_grad():
        for rows in (2, 7, 64, 512):
            inputs = make_inputs(rows, 8192, dtype)
            theirs, ours = errors_against_float64(inputs, plain(*inputs), fused(*inputs))
            ratios.append(ours / theirs)
    assert math.prod(ratios) ** (1 / len(ratios)) <= 1.05


def test_cpu_reduction_is_split():
    """Check that the fused nest's reduction runs over half a row, both halves at once."""
    _, code = compile_cpu(bridge_backend, torch.float32)
    assert "8192L" not in next(line for line in code.splitlines() if "for(int64_t x1" in line)


def test_stages_stay_counted():
    """Check the counters of one compilation, which are deterministic: what was seen, fused and measured."""
    compile_offline(torch.bfloat16, 4096, False, bridge_backend)
    report = bridge.report()
    assert report.counters["groups_seen"] == 1
    assert report.counters["groups_fused"] == 1
    assert set(report.groups[0].seconds) >= {"translate", "passes", "lift"}
