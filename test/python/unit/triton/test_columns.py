"""Test Triton kernels of rows that add up columns, and those that add up what they leave."""

from __future__ import annotations

import functools
import re

import pytest
import torch
import training
from functions import norm

import bridge
from bridge import offline
from bridge.backend import bridge as backend
from bridge.lowering.triton import columns
from bridge.lowering.triton.column_loads import Loaded
from bridge.lowering.triton.columns import (
    MOST_PARTS,
    SUM_ELEMENTS,
    Extents,
    looped_sum_block,
    sum_block,
)


@pytest.mark.parametrize("there", [768, 4096])
def test_a_block_that_adds_up_has_all_parts_and_whole_sectors(there):
    for parts in (1, 2, 16, 100, 512, 1024, 1025, MOST_PARTS):
        columns, warps = sum_block(parts, there)
        assert columns * 4 >= 32 and columns * parts <= SUM_ELEMENTS
        assert warps in (1, 2, 4, 8)
    assert sum_block(128, there) == (16, 4) and sum_block(16, there) == (16, 1)
    assert sum_block(MOST_PARTS, there)[0] == 8


def test_few_columns_with_many_parts_have_more_programs():
    """Check that 784 parts of 768 columns are added up by 96 programs, and those of 3072 by 192."""
    assert sum_block(784, 768) == (8, 8) and sum_block(784, 3072) == (16, 8)
    assert sum_block(196, 768) == (16, 8)


def test_a_block_that_loops_over_parts_has_few_at_a_time():
    """Check that a block that loops over parts has few at a time: each of its sums takes 16 registers a thread."""
    assert looped_sum_block(16) == ((16, 1), 16)
    assert looped_sum_block(1024) == looped_sum_block(MOST_PARTS) == ((16, 8), 256)


def test_what_a_symbol_has_many_of_is_added_up_in_a_loop():
    """Check that a symbolic number of parts is added up in a loop, with a name for a kernel that is not persistent."""
    function, make = training.PATTERNS["gelu(x @ w + b)"]
    compile_fx = functools.partial(backend, options={"strict": True, "training": True})
    _, backward = training.graphs(function, make(), compile_fx, dynamic=True)
    (adding,) = (k.source for k in offline.parse_wrapper(backward).kernels if "'R0_BLOCK': 128" in k.source)
    assert "def triton_red_" in adding and "for r0_offset in" in adding and "'XBLOCK': 16" in adding


def test_the_last_block_may_have_less_rows():
    assert Extents(2049, 24, 16).programs == 129


def test_the_last_block_of_each_group_may_have_less_rows():
    assert Extents(3 * 50, 24, 16, 50).programs == 3 * 4


def sums(x, g, w):
    h = norm(x, w)
    return h, (h * g).sum(0), x.sum(0)


@pytest.fixture(scope="module")
def code():
    torch._dynamo.reset()
    inputs = torch.randn(2048, 4096), torch.randn(2048, 4096), torch.randn(4096)
    options = {"strict": True, "force_fusion": True}
    result = offline.compile_for_gpu(sums, inputs, compile_fx=functools.partial(backend, options=options))
    assert result.n_kernels == 2, bridge.report()
    return result.code


def test_what_the_columns_are_of_is_in_registers(code):
    """Check that x, g and w are loaded once each by the first kernel, and all parts of its sums by the second."""
    rows, adding = re.findall(r"\ndef triton_.*?(?=\n''')", code, re.DOTALL)
    assert len(re.findall(r"tl\.load\(", rows)) == 3
    assert len(re.findall(r"tl\.store\(ws_ptr", rows)) == 2
    assert len(re.findall(r"tl\.load\(", adding)) == 2 and "for " not in adding
    assert "'XBLOCK': 16" in code


def test_partial_sums_live_as_long_as_they_are_read(code):
    """Check that partial sums live as long as they are read, as parts of one workspace of 128 blocks."""
    call = code[code.index("def call(") :]
    assert "workspace_0 = empty_strided_cuda((1048576, )" in call
    views = re.findall(r"(buf\d+) = reinterpret_tensor\(workspace_0, .*, (\d+)\)", call)
    assert [int(offset) for _, offset in views] == [0, 524288]
    assert call.index("del workspace_0") < call.index(".run(", call.index("del workspace_0"))
    assert all(f"del {name}" in call for name, _ in views)
    assert "workspace_0;" not in call


@pytest.mark.parametrize(("name", "ahead"), [("a, b = rms(x).chunk(2); silu(a) * b", False), ("AdaLN, h", True)])
def test_rows_are_loaded_ahead_where_all_programs_fit(name, ahead):
    """Check that rows are loaded ahead where all programs fit.

    Each of 256 programs has 96 KB of rows loading, or of the other function 192 KB.
    """
    function, make = next(pattern for key, pattern in training.PATTERNS.items() if key.startswith(name))
    (kernel,) = (
        kernel.source
        for code in training.graphs(function, make(), backend)
        for kernel in offline.parse_wrapper(code).kernels
        if "RSPLIT_SIZE" in kernel.source
    )
    assert f"'mix_order_reduction_allow_multi_stages': {ahead}" in kernel


def silu_gradient(x, g, centre, spread, weight, bias):
    """Return a BatchNorm's result, and the sums of the gradient of SiLU behind it, of pixels in rows."""
    h = (x.float() - centre) * spread * weight + bias
    gate = torch.sigmoid(h)
    d = g.float() * gate * (1 + h * (1 - gate))
    return h, (d * (x.float() - centre)).sum(0), d.sum(0)


def gated_pictures(x, g, gate, bias, slope, centre):
    """Return the gradient of a leaky ReLU before a gate of each picture and channel, and its sums."""
    d = torch.where(x > 0, g.float() * gate.clamp(0, 6)[:, None] + bias[:, None], slope[:, None]).flatten(0, 1)
    return d, (d * (x.flatten(0, 1).float() - centre)).sum(0), d.sum(0)


def of_pixels(rows, columns):
    return [*torch.randn(2, rows, columns, dtype=torch.bfloat16), *torch.randn(4, columns)]


def of_pictures():
    return [
        *torch.randn(2, 512, 784, 72, dtype=torch.bfloat16),
        *torch.randn(3, 512, 72),
        torch.randn(72),
    ]


def test_short_rows_that_load_what_others_load_are_not_loaded_ahead():
    """Check rows that load what their picture has: those of an EfficientNet took 17 us and, with rows ahead, 37."""
    torch._dynamo.reset()
    kernel = offline.compile_for_gpu(gated_pictures, of_pictures(), compile_fx=backend).kernels[0].source
    assert "'RSPLIT_SIZE': 512, 'NUM_STAGES': 1" in kernel, bridge.report()


@pytest.mark.parametrize(("block", "ahead"), [(128, True), (64, False), (32, False)])
def test_parameters_are_loaded_once_for_the_rows_of_a_step(monkeypatch, block, ahead):
    """Check 131072 rows of 96 of an EfficientNet, four at a time: 1024 programs took 55 us and, with rows ahead, 36."""
    monkeypatch.setattr(columns, "multiprocessors", lambda device: 132)
    monkeypatch.setattr(columns, "shared_memory", lambda device: 233472)
    loads = [Loaded(2, True, True)] * 2 + [Loaded(4, False, True)] * 4
    extents = Extents(131072, 96, block)
    assert columns._loads_rows_ahead(extents, loads, torch.device("cuda")) is ahead


def test_very_short_rows_are_computed_in_long_steps():
    torch._dynamo.reset()
    inputs = of_pixels(1 << 20, 16)
    kernel = offline.compile_for_gpu(silu_gradient, inputs, compile_fx=backend).kernels[0].source
    assert "config={'XBLOCK': 64, 'RSPLIT_SIZE': 2048" in kernel and "'num_warps': 2" in kernel


def standardised(x, centre, spread, weight, bias):
    """Load four parameters for each element of a row, and store a row beside the sums of its columns."""
    h = (x - centre) / (spread * spread + 1).sqrt()
    return h * weight + bias, (h * h).sum(0)


def test_parameters_are_loaded_once_where_they_are_most_of_a_row():
    """Check that parameters are loaded once where they are most of a row.

    Triton moves no load out of a loop that stores: a correlation's gradient took 363 us, and so 279.
    """
    inputs = [torch.randn(512, 1024), *torch.randn(4, 1024)]
    compile_fx = functools.partial(backend, options={"strict": True, "force_fusion": True})
    rows = offline.compile_for_gpu(standardised, inputs, compile_fx=compile_fx).kernels[0].source
    before, _, loop = rows.partition("for _ in tl.range(")
    assert (before.count("tl.load("), loop.count("tl.load(")) == (4, 1)
