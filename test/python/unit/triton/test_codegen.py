"""Options of Inductor's that its Triton code depends on: what Bridge emits under them compiles, and nothing fails."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
import triton.language as tl
from emitted import run_emitted
from functions import gate, norm
from torch._dynamo.utils import counters
from torch._inductor import config

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend

#: Values that are not the default; names without a section are of `triton`.
TRITON_OPTIONS: list[dict[str, Any]] = [
    {"use_block_ptr": True},
    {"use_tensor_descriptor": True},
    {"use_block_ptr": True, "prefer_nd_tiling": True, "tile_reductions": True},
    {"prefer_nd_tiling": True, "tile_reductions": True, "max_tiles": 3},
    {"max_tiles": 1},
    {"multi_kernel": 1, "cooperative_reductions": True},
    {"multi_kernel": 3},
    {"force_cooperative_reductions": True},
    {"persistent_reductions": False},
    {"dense_indexing": True},
    {"enable_pdl": True},
    {"nested_reduction": True},
    {"mix_order_reduction": False, "skip_l1_cache": True, "divisible_by_16": False},
]
OPTIONS = [
    *({f"triton.{name}": value for name, value in options.items()} for options in TRITON_OPTIONS),
    {"assume_aligned_inputs": True, "triton.use_tensor_descriptor": True},
    {"triton.use_block_ptr": True, "max_autotune_pointwise": True},
    {"combo_kernels": True, "combo_kernels_autotune": 0, "combo_kernel_allow_mixed_sizes": 2},
    {"triton.use_block_ptr": True, "combo_kernels": True},
    {"coordinate_descent_tuning": True, "max_autotune_pointwise": True},
    {"debug_index_asserts": True, "nan_asserts": True, "inplace_buffers": False},
    {"emulate_precision_casts": True},
]


def normal(*shape, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)


def product(x, w):
    """Pairs are loaded, and every other element is stored: what stands beside it needs a matrix product of the rest."""
    y = norm(x)
    return torch.stack([y[..., ::2] * y[..., 1::2], (y[..., 1::2] * 2) @ w], -1).flatten(-2)


def side_by_side(x, row):
    """Pairs of one row, segments of several: kernels that may share a launch."""
    y, parts = norm(row), norm(x).unflatten(-1, (-1, 16))
    scale = parts.abs().amax(-1, keepdim=True)
    turned = torch.stack([-y[..., 1::2], y[..., ::2]], -1).flatten(-2)
    return turned, (parts / scale).flatten(-2), scale.squeeze(-1)


PROGRAMS = {product: [normal(6, 64), normal(32, 32)], side_by_side: [normal(6, 128).bfloat16(), normal(1, 64)]}


def skip_unknown(options):
    if not options.keys() <= config._config.keys():
        pytest.skip("not an option of this torch")


def faults() -> dict[str, int]:
    """Counters that stand for bugs."""
    return {name: n for name, n in counters["bridge"].items() if n and re.search("internal_error|withdrawn", name)}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: ",".join(o))
def test_every_kernel_compiles(options, program):
    skip_unknown(options)
    counters.clear()
    patches = {"max_autotune_gemm": False, **options}
    result = offline.compile_for_gpu(program, PROGRAMS[program], compile_fx=bridge_backend, config_patches=patches)
    assert faults() == {} and bridge.report().fused, bridge.report()
    for kernel in result.kernels:
        assert offline.compile_kernel(kernel, config={}).cubin


@pytest.mark.parametrize(
    "option, made", [("use_block_ptr", "make_block_ptr"), ("use_tensor_descriptor", "make_tensor_descriptor")]
)
@pytest.mark.filterwarnings("ignore:.*no longer provides the block-pointer:FutureWarning")
def test_block_pointers_of_a_kernel_whose_blocks_are_fixed(option, made):
    """Inductor asks for the block of a row, which a fixed configuration has not where rows are kept whole."""
    counters.clear()
    x = normal(40, 256)
    options = {f"triton.{option}": True, "assume_aligned_inputs": True}
    results, (code,) = run_emitted(gate, [x], bridge_backend, **options)
    assert faults() == {} and "@triton_heuristics.fixed_config(" in code and code.count(".run(") == 1
    assert f"tl.{made}(" in code or not hasattr(tl, made)  # Triton 3.9 has one of the two, and Inductor does without
    torch.testing.assert_close(results.double(), gate(x.double()), rtol=1e-5, atol=1e-5)
