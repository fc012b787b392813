"""Rows along which memory is far apart stay in Inductor's tiles, which have many; so does what gains nothing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.lowering.lift import commit
from bridge.reasons import Reason, Unsupported


def halved_and_summed(x):
    y = x / 8
    return y, y.float().sum(0)


def sums_of_columns(a, b, c):
    return (a * c).sum(0), (b * c).sum(0)


def sums_of_rows(a, b, c):
    return (a * c).sum(-1), (b * c).sum(-1)


def kernels(function, *inputs) -> tuple[int, int]:
    """Kernels without and with Bridge."""
    theirs = offline.compile_for_gpu(function, inputs)
    ours = offline.compile_for_gpu(function, inputs, compile_fx=bridge_backend)
    return theirs.n_kernels, ours.n_kernels


def test_a_column_is_not_kept_as_a_row():
    """An H100 took 160 us for what Inductor's three kernels do in 12, each column read alone."""
    assert kernels(halved_and_summed, torch.randn(8192, 768).bfloat16()) == (3, 3)
    (group,) = bridge.report().groups
    assert group.reason is Reason.not_profitable and "beside the rows" in group.detail


def test_sums_of_columns_have_launches_of_their_own():
    inputs = torch.randn(100, 4096), torch.randn(130, 4096), torch.randn(4096)
    before, after = kernels(sums_of_columns, *inputs)
    assert before == after > 1
    assert kernels(sums_of_rows, *inputs) == (2, 1)


def test_other_loops_alone_are_no_gain():
    kernel = SimpleNamespace(get_operation_names=lambda: {"op0"})
    with pytest.raises(Unsupported, match="nothing less to load") as refusal:
        commit._check_rows(kernel, [kernel], SimpleNamespace(in_registers=False), 0)
    assert refusal.value.reason is Reason.not_profitable


def rotated_neighbours(x, y):
    """Two functions of neighbours; those of the second are in other rows, so that there is no second kernel to join."""
    even, odd = y[::2], y[1::2]
    h = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)
    return h, torch.stack([h[..., :64:2] * even, h[..., 1:64:2] * odd], -1).flip(0)


def test_a_short_row_in_other_loops_is_no_gain():
    """Inductor keeps it in registers by itself: that its loops are others was reported as a group that is fused."""
    before, after = kernels(rotated_neighbours, torch.randn(256, 256), torch.randn(64))
    assert before == after == 2
    (group,) = bridge.report().groups
    assert not group.fused and group.done.restructured == 0
