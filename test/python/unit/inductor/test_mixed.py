"""Test reductions of rows and columns that Inductor computes in one mix-order kernel, and what it then drops."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from functions import norm
from schedules import look_at_gpu_schedule

import bridge
from bridge import offline
from bridge.backend import bridge as backend
from bridge.inductor import bytes_touched, mixed


def column_sums(x, w):
    return norm(x) * w, (x * w).sum(0), x.sum(0)


def read_again(x, m):
    total = x.sum(0)
    return norm(x), total, total[:, None] * m


def rounded(x, m):
    total = x.sum(0).to(torch.bfloat16)
    return norm(x), total, total[:, None] * m


@pytest.mark.parametrize("function, kernels, changed", [(column_sums, 1, 0), (read_again, 2, 0), (rounded, 3, 1)])
def test_a_second_stage_that_a_mixed_kernel_computes_is_left_alone(function, kernels, changed):
    """Check that a second stage in a mix-order kernel is left alone.

    Only where a kernel of its own just rounds the sum, the sum becomes a part of that kernel.
    """
    inputs = torch.randn(16384, 768), torch.randn(768, 64) if function is not column_sums else torch.randn(768)
    counts = []
    for compile_fx in (None, backend):
        torch._dynamo.reset()
        result = offline.compile_for_gpu(function, inputs, compile_fx=compile_fx)
        assert "workspace_0" in result.code, "no mix-order kernel"
        counts.append(result.n_kernels)
    report = bridge.report()
    assert "internal_error" not in str(report) and len(report.fused) == changed, report
    assert counts[1] <= counts[0] and counts[1] == kernels
    assert report.kernels_after == counts[1]


@pytest.mark.parametrize("apart", [False, True])
def test_partial_sums_in_a_workspace_are_no_buffers_that_a_kernel_moves(apart):
    """Check that partial sums in a workspace are no buffers that a kernel moves.

    A report had a mix-order kernel move such buffers; so it was for kernels taken apart for a trial.
    """
    seen = []

    def look(kernels):
        (mixed_kernel,) = filter(mixed.is_mixed, kernels)
        parts = {name for node in mixed.nodes_of_parts(mixed_kernel)[1] for name in node.get_buffer_names()}
        others = [kernel for kernel in kernels if kernel is not mixed_kernel]
        read = {name for kernel in others for name in bytes_touched(kernel)}
        registered = mixed_kernel.scheduler.name_to_fused_node
        registered |= {node.get_name(): node for node in mixed_kernel.get_nodes() if apart}
        seen.append((parts & set(bytes_touched(mixed_kernel)), parts & read, len(parts), len(others)))

    look_at_gpu_schedule(rounded, [torch.empty(16384, 768), torch.empty(768, 64)], look)
    assert seen == [(set(), set(), 1, 2)]


def split_sum(columns, rows, split=8):
    node = SimpleNamespace(_split_size=split, _original_ranges=[columns], _original_reduction_ranges=[rows, 4])
    return SimpleNamespace(node=node, is_reduction=lambda: True)


def test_inductor_is_not_asked_of_split_sums_that_differ():
    """Check that Inductor is not asked about split sums that differ.

    It asserts that they have equal rows and columns, unless something else is reduced beside them.
    """

    def can_be_asked(*nodes):
        return mixed.can_be_asked(SimpleNamespace(get_nodes=lambda: nodes))

    assert can_be_asked(split_sum(16, 64), split_sum(16, 64)) and can_be_asked()
    assert not can_be_asked(split_sum(16, 64), split_sum(1, 1024))
    assert can_be_asked(split_sum(16, 64), split_sum(1, 1024), split_sum(16, 64, split=None))


@pytest.mark.parametrize("ahead", [True, False])
def test_bridges_kernels_load_rows_ahead_whatever_inductors_own_do(ahead):
    """Check that the option holds in the block only: it is off by default in torch 2.11."""
    before = mixed.loads_rows_ahead()
    with mixed.rows_ahead(ahead):
        assert mixed.loads_rows_ahead() is ahead
    assert mixed.loads_rows_ahead() is before
