"""Test what kernels say of their rows: those of Inductor's have none that Bridge knows of."""

from __future__ import annotations

import pytest

from bridge.lowering.triton.kept_rows import KeptRowsMixin


class Kernel(KeptRowsMixin):
    persistent_reduction = True
    inside_reduction = True


def test_kernels_of_inductors():
    assert not Kernel().bridge_keeps_rows()
    assert Kernel().bridge_rows_of_tile() == 0


@pytest.mark.parametrize(("block", "rows"), [(None, 1), ((1, 4), 1), ((8, 2), 8)])
def test_a_tile_has_the_rows_of_a_block(block, rows):
    kernel = Kernel()
    kernel.bridge_fused, kernel.bridge_block = True, block
    assert kernel.bridge_rows_of_tile() == rows


@pytest.mark.parametrize("name", ["persistent_reduction", "inside_reduction"])
def test_rows_are_whole_in_a_persistent_reduction(name):
    kernel = Kernel()
    kernel.bridge_fused = True
    assert kernel.bridge_keeps_rows()
    setattr(kernel, name, False)
    assert not kernel.bridge_keeps_rows()
