"""Test quantisation as GEMMs want it.

Kernels for a GPU that is not there, proven twice, and numbers equal to eager's.
"""

from __future__ import annotations

import pytest
import quantisation
import torch
from emitted import emitted_for, run_emitted
from patterns import PATTERNS as ENGINE
from quantisation import PATTERNS, ROWS, blocks_e8m0, count, mark_rows, norm_int4, nvfp4, packed_by_pairs, swizzled

from bridge.backend import bridge
from bridge.diagnostics.recording import recorded
from bridge.inductor.compiling import torch_release
from bridge.support.fresh_code import fresh_entry

#: name -> kernels of Bridge.
KERNELS = {
    "silu(a) * b, MXFP8, rows and columns": 1,
    "silu(a) * b, MXFP8, rows and columns, not transposed": 1,
    "silu(a) * b, MXFP8, rows and columns, scales by log2": 1,
    "silu(a) * b, MXFP8, rows, scales swizzled": 2,
    "RMSNorm, fp8 blocks, scales column-major": 1,
    "RMSNorm, fp8 blocks, scales into a buffer": 1,
    "silu(a) * b, NVFP4": 1,
    "silu(a) * b, NVFP4, scale of the tensor": 1,
    "silu(a) * b, NVFP4, where": 1,
    "silu(a) * b, NVFP4, bits": 1,
    "silu(a) * b, NVFP4, pairs": 1,
    "silu(a) * b, NVFP4, sums of pairs": 1,
    "residual, RMSNorm, NVFP4": 1,
    "residual, RMSNorm, NVFP4, flat": 1,
    "residual, RMSNorm, NVFP4, pairs": 1,
    "residual in place, RMSNorm, NVFP4": 1,
    "residual in place, RMSNorm, int8": 1,
    "residual in place, RMSNorm, int8, zero point": 1,
    "RMSNorm, int4 in blocks": 1,
    "MLA: two norms, RoPE, cat": 1,
}
if torch_release() >= (2, 15):
    KERNELS["silu(a) * b, MXFP8, rows, scales swizzled"] = 1

#: The same where the number of rows is a symbol.
KERNELS_OF_SYMBOLIC_ROWS = {
    "silu(a) * b, MXFP8, rows and columns": 1,
    "silu(a) * b, MXFP8, rows and columns, not transposed": 1,
    "RMSNorm, fp8 blocks, scales column-major": 1,
    "silu(a) * b, NVFP4": 1,
    "silu(a) * b, NVFP4, scale of the tensor": 1,
    "silu(a) * b, NVFP4, bits": 1,
    "silu(a) * b, NVFP4, sums of pairs": 1,
    "residual, RMSNorm, NVFP4": 1,
    "residual, RMSNorm, NVFP4, pairs": 3,
    "RMSNorm, int4 in blocks": 1,
}


def rechecked(graph, inputs):
    return bridge(graph, inputs, options={"recheck": True})


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("name", "dynamic", "kernels"),
    [(name, False, kernels) for name, kernels in KERNELS.items()]
    + [(name, True, kernels) for name, kernels in KERNELS_OF_SYMBOLIC_ROWS.items()],
)
def test_kernels(name, dynamic, kernels):
    """Check that each pattern has as many kernels as the lists say, and that isl proves the fusions.

    Fewer are progress, to be written down, and more a regression.
    """
    function, make = PATTERNS[name]
    with recorded() as recording:
        assert count(function, make(ROWS), rechecked, dynamic) == kernels
    fused = [group for report in recording.reports for group in report.groups if group.fused]
    assert all(group.certificate for group in fused)


@pytest.mark.skipif(torch_release() < (2, 15), reason="Inductor makes no stages there")
@pytest.mark.parametrize(("columns", "own"), [(4096, True), (14336, False), (32768, False)])
def test_a_kernel_of_stages_becomes_one_of_rows_in_registers(columns, own):
    """Check that a kernel of stages, a norm and the scales of its blocks, becomes one that keeps rows in registers.

    A row that is too long for that stays in Inductor's kernel.
    """
    (blocks,) = (pattern for pattern in ENGINE if pattern.name == "rmsnorm_fp8_blocks")
    with recorded() as recording:
        assert (
            count(blocks.function, (torch.ones(1024, columns).bfloat16(), torch.ones(columns).bfloat16()), bridge) == 1
        )
    (group,) = (group for report in recording.reports for group in report.groups)
    assert (group.kernels_before, group.fused) == (1, own)


@pytest.mark.skipif(torch_release() < (2, 15), reason="Inductor makes no stages there")
def test_a_kernel_of_stages_joins_others():
    function, make = PATTERNS["residual, RMSNorm, NVFP4"]
    with recorded() as recording:
        assert count(function, make(ROWS), bridge) == 1
    (group,) = (group for report in recording.reports for group in report.groups)
    assert group.fused and (group.kernels_before, group.kernels_after) == (2, 1)


@pytest.mark.parametrize("name", ["silu(a) * b, NVFP4, scale of the tensor", "residual, RMSNorm, NVFP4"])
def test_extents_that_are_factors_by_chance(name, monkeypatch):
    """Check extents that are products by chance: 4 x 32 x 4 x 4 scales may be rows and blocks in a wrong order."""
    monkeypatch.setattr(quantisation, "COLUMNS", 64)
    function, make = PATTERNS[name]
    assert count(function, make(128), rechecked) == 1


def matrix(rows: int, columns: int) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(rows + columns))


def gated_nvfp4(a, b):
    return nvfp4(a.relu() * b, layout=lambda scales: scales)


def gated_nvfp4_pairs(a, b):
    return nvfp4(a.relu() * b, layout=lambda scales: scales, pack=packed_by_pairs)


def largest_in_tiles(a, b):
    """Divide blocks by their largest number, and return these numbers in tiles."""
    blocks = (a.relu() * b).unflatten(-1, (-1, 16))
    largest = blocks.abs().amax(-1)
    return blocks / largest.unsqueeze(-1), swizzled(largest)


def gated_mxfp8_in_tiles(a, b):
    elements, scales = blocks_e8m0(a.relu() * b)
    return elements, swizzled(scales)


def gated_mxfp8_both_ways(a, b, along_rows=32, along_columns=32):
    h = a.relu() * b
    return *blocks_e8m0(h, along_rows), *blocks_e8m0(h.t().contiguous(), along_columns)


def shorter_along_rows(a, b):
    return gated_mxfp8_both_ways(a, b, 16, 32)


def shorter_along_columns(a, b):
    return gated_mxfp8_both_ways(a, b, 32, 8)


def gated_mxfp8_both_ways_in_place(a, b):
    h = a.relu() * b
    elements, scales = blocks_e8m0(h.t())
    return *blocks_e8m0(h), elements.t(), scales.t()


def nvfp4_of_rows(x, y):
    """Quantise rows divided by their largest number, which is exact, as a sum of squares would not be."""
    h = x + y
    return nvfp4(h / h.abs().amax(-1, keepdim=True), layout=lambda scales: scales)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(torch.uint8)


@pytest.mark.parametrize(
    ("function", "size"),
    [
        (gated_nvfp4, (8, 64)),
        (gated_nvfp4_pairs, (8, 64)),
        (nvfp4_of_rows, (8, 64)),
        (gated_mxfp8_in_tiles, (128, 128)),
        (gated_mxfp8_both_ways, (64, 96)),
        (gated_mxfp8_both_ways_in_place, (64, 96)),
        (shorter_along_rows, (64, 96)),
        (shorter_along_columns, (64, 96)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_bit_is_eagers(function, size):
    """Check that each product, quotient and conversion is rounded as by eager in float32, in one kernel."""
    inputs = [matrix(*size), matrix(*size).flip(0)]
    expected = function(*inputs)
    actual, codes = run_emitted(function, inputs, bridge)
    assert sum(code.count("async_compile.triton(") for code in codes) == 1
    for ours, theirs in zip(actual, expected, strict=True):
        assert (ours.dtype, ours.shape, ours.stride()) == (theirs.dtype, theirs.shape, theirs.stride())
        assert torch.equal(bits(ours), bits(theirs))


@pytest.mark.parametrize("function", [gated_mxfp8_both_ways, gated_mxfp8_both_ways_in_place, shorter_along_rows])
def test_scales_of_symbolic_columns_stayed_apart(function):
    """Check that scales of symbolic columns are in one kernel: steps through the transposed copy are symbols."""
    inputs = [matrix(64, 96), matrix(64, 96).flip(0)]
    expected = function(*inputs)
    mark_rows(inputs)
    actual, codes = run_emitted(function, inputs, bridge, dynamic=None)
    assert sum(code.count("async_compile.triton(") for code in codes) == 1
    assert all("ks0" in code for code in codes)
    for ours, theirs in zip(actual, expected, strict=True):
        assert (ours.dtype, ours.shape, ours.stride()) == (theirs.dtype, theirs.shape, theirs.stride())
        assert torch.equal(bits(ours), bits(theirs))


def assert_bits_are_eagers(compiled, function, rows):
    inputs = [matrix(rows, 64), matrix(rows, 64).flip(0)]
    mark_rows(inputs)
    for ours, theirs in zip(compiled(*inputs), function(*inputs), strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        assert torch.equal(bits(ours), bits(theirs))


#: Numbers of rows that fill tiles of 128, of which torch has one alone be a case of its own, and others.
SIZES = [(256, 384), (200, 136)]


@pytest.mark.in_turn(2)
@pytest.mark.one_in(2)
@pytest.mark.parametrize("sizes", SIZES, ids=["whole", "padded"])
def test_scales_in_tiles_of_symbolic_rows_stayed_apart(sizes):
    """Check that scales in tiles of 128 rows (4 x 32) fuse for a symbolic number of tiles, in one graph for all sizes.

    Inductor copies tiles of so few columns in a kernel of its own.
    """
    codes: list[str] = []
    torch._dynamo.reset()
    with emitted_for("sm_90", codes), torch._dynamo.config.patch(error_on_recompile=True):
        compiled = torch.compile(fresh_entry(largest_in_tiles), backend=bridge)
        for rows in sizes:
            assert_bits_are_eagers(compiled, largest_in_tiles, rows)
    (code,) = codes
    if sizes is SIZES[0]:
        assert code.count("async_compile.triton(") == 2


@pytest.mark.in_turn(2)
@pytest.mark.one_in(2)
@pytest.mark.parametrize("sizes", SIZES, ids=["whole", "padded"])
def test_scales_in_tiles_of_symbolic_rows_in_cpp(sizes, compiler):
    compiled = compiler(largest_in_tiles, backend="bridge")
    with torch._dynamo.config.patch(error_on_recompile=True):
        for rows in sizes:
            assert_bits_are_eagers(compiled, largest_in_tiles, rows)


def test_codes_of_a_norm_are_eagers():
    """Check that codes of a norm are eager's; its squares are added in another order, so scales are only close."""
    inputs = [matrix(8, 64), matrix(1, 64)[0]]
    (code, scale, low), codes = run_emitted(lambda x, weight: norm_int4(x, weight, size=16), inputs, bridge)
    expected_code, expected_scale, expected_low = norm_int4(inputs[0], inputs[1], size=16)
    assert sum(source.count("async_compile.triton(") for source in codes) == 1
    assert torch.equal(code, expected_code)
    torch.testing.assert_close((scale, low), (expected_scale, expected_low), rtol=1e-6, atol=1e-6)
