"""Test that fused kernels compile to cubins for GPUs that are not there, without spills."""

import pytest
import torch
from offline_functions import norm_inputs
from rfc import swiglu_norm

import bridge
from bridge import offline

ROWS, COLUMNS = 2048, 8192


def norm_gate(x, residual, weight, eps=1e-6):
    x = x + residual
    variance = x.pow(2).mean(-1, keepdim=True)
    gate, up = (x * torch.rsqrt(variance + eps) * weight).chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * up


def norm_rope_interleaved(x, weight, cos):
    x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight
    return x[:, 0::2] * cos - x[:, 1::2] * cos


FUNCTIONS = {
    "norm_gate": (norm_gate, [(ROWS, COLUMNS), (ROWS, COLUMNS), (COLUMNS,)]),
    "norm_rope_interleaved": (norm_rope_interleaved, [(ROWS, 2048), (2048,), (ROWS, 1024)]),
}


def fuse(name, dtype, **options):
    fn, shapes = FUNCTIONS[name]
    inputs = [torch.zeros(shape, dtype=dtype) for shape in shapes]
    result = offline.compile_for_gpu(fn, inputs, context=bridge.enabled(strict=True, **options))
    (kernel,) = result.kernels
    assert result.launches == [kernel.name]
    return kernel


@pytest.mark.one_in(4)
@pytest.mark.parametrize("arch", [90, 80])
@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_fused_kernel_compiles(name, persistent, arch):
    kernel = fuse(name, torch.bfloat16, persistent=persistent)
    for cubin in offline.compile_kernel(kernel, arch=arch):
        assert cubin.cubin.startswith(b"\x7fELF")
        assert f".target sm_{arch}" in cubin.ptx
        assert 0 < cubin.registers <= 255
        assert cubin.spills == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_persistent_kernel_reads_the_row_once(dtype):
    kernel = fuse("norm_gate", dtype)
    halves_of_x_and_residual_and_weight = {"in_ptr0": 2, "in_ptr1": 2, "in_ptr2": 2}
    assert offline.count_loads(kernel) == halves_of_x_and_residual_and_weight
    assert sum(offline.count_stores(kernel).values()) == 1


def test_kernels_compile_without_spills(plain):
    for kernel in plain.kernels:
        for cubin in offline.compile_kernel(kernel):
            assert cubin.spills == 0
            assert 0 < cubin.registers <= 255
            assert cubin.cubin.startswith(b"\x7fELF")
            assert ".target sm_90a" in cubin.ptx
    assert cubin.config.keys() == {"XBLOCK", "num_warps", "num_stages"}


def test_spills_are_reported(plain):
    config = {"XBLOCK": 4096, "num_warps": 1}
    cubin = offline.compile_kernel(plain.kernels[1], config=config)
    assert cubin.spills > 0
    assert cubin.config["num_warps"] == 1


def test_other_architecture(plain):
    (cubin,) = offline.compile_kernel(plain.kernels[0], arch=80)
    assert ".target sm_80" in cubin.ptx
    result = offline.compile_for_gpu(swiglu_norm, norm_inputs(), arch="sm_80")
    assert "cc=80" in result.code
