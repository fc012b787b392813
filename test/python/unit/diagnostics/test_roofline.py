"""Test expected times."""

from __future__ import annotations

import pytest
import torch
from explained import next_row

from bridge.diagnostics.explaining import explain
from bridge.diagnostics.roofline import Roofline


def test_roofline_is_the_larger_of_both():
    line = Roofline("device", bandwidth=1e9, rate=1e9, launch=1e-6)
    assert line.seconds(2000, 10, 1) == pytest.approx(3e-6)
    assert line.seconds(10, 2000, 2) == pytest.approx(4e-6)


def test_a_buffer_that_only_the_next_kernel_reads_is_read_from_memory():
    """Check that a buffer that only the next kernel reads counts where it is read, not only where it is written."""
    (group,) = explain(next_row, torch.zeros(512, 1024), registers=False).groups
    row_values = sum(512 * 4 for s in group.statements for name in (*s.reads, *s.writes) if group.buffers.get(name))
    inputs = len({s.kernel for s in group.statements}) * 512 * 1024 * 4
    assert group.bytes_before <= inputs + row_values + 512 * 1024 * 4
    assert group.bytes_before > group.bytes_if_one
