"""Test the blocks that Bridge gives to kernels, in the place of those that Inductor's runtime would try."""

from __future__ import annotations

import pytest
import sympy
import torch

from bridge.lowering.triton.fixed_blocks import fixed_block, fixed_step, has_free_blocks

TILING = {"x": sympy.Integer(96), "r0_": sympy.Integer(600)}


def test_a_block_has_no_more_rows_than_there_are():
    assert fixed_block(TILING, 256, 4).config == {"XBLOCK": 128, "num_warps": 4, "num_stages": 1}
    assert fixed_block({**TILING, "x": sympy.Symbol("s0")}, 256, 4).config["XBLOCK"] == 256


def test_a_row_that_is_kept_has_a_block_without_a_choice():
    chosen = fixed_block(TILING, 1, 4)
    assert "R0_BLOCK" not in chosen.config and chosen["R0_BLOCK"] == 1024
    assert fixed_block(TILING, 1, 4, 256).config["R0_BLOCK"] == 256


def test_a_program_with_a_block_of_rows_computes_some_of_them_at_a_time():
    chosen = fixed_step(TILING, 64, 2, 3, 4)
    blocks = {"XBLOCK": 2, "RSPLIT_SIZE": 64, "NUM_STAGES": 3}
    assert chosen.config == {**blocks, "num_warps": 4, "num_stages": 1} and chosen["R0_BLOCK"] == 1024


@pytest.mark.parametrize("option", ["max_autotune", "coordinate_descent_tuning", "triton.multi_kernel"])
def test_a_kernel_that_is_tuned_has_no_block_of_bridges(option):
    assert has_free_blocks(TILING) and not has_free_blocks({**TILING, "y": 2})
    with torch._inductor.config.patch({option: True}):
        assert not has_free_blocks(TILING)
