"""Test sums over experts, fields or tokens for each element of a row, then the row: one kernel, against float64."""

from __future__ import annotations

import pytest
import torch
from programs import wide
from rechecked import check
from torch.nn import functional

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.reasons import Reason


def normed_sum(x, _):
    y = wide(x).sum(1)
    return y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)


def normed_peak(x, _):
    return functional.layer_norm(wide(x).amax(1), x.shape[-1:])


def weighted_then_kept(x, weights):
    """Store the weighted sum, and divide it by its row's peak."""
    total = 1 + (wide(x) * wide(weights)[..., None]).sum(1)
    return total, total / total.abs().amax(-1, keepdim=True)


def interactions(x, _):
    """Compute a factorisation machine: two sums of one kernel, and then the row."""
    return (wide(x).sum(1).pow(2) - wide(x).pow(2).sum(1)).sum(-1)


def pooled_by_scores(x, scores):
    """Pool by a softmax of scores, a row of another length that all lanes read."""
    return functional.normalize((wide(x) * wide(scores).softmax(-1)[..., None]).sum(1), dim=-1)


def sum_of_windows(x, _):
    """Reduce over two loops, then normalise."""
    return normed_sum(wide(x).unflatten(1, (3, -1)).sum(1), None)


FUNCTIONS = [normed_sum, normed_peak, weighted_then_kept, interactions, pooled_by_scores, sum_of_windows]


def inputs(shape, dtype):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(size, generator=generator).to(dtype) for size in (shape, shape[:2])]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(6, 9, 32), (5, 12, 40)], ids=str)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_sums_in_lanes_then_the_row_are_one_kernel(function, shape, dtype):
    """Check that sums in lanes and then the row are one kernel; rows of 40 elements have idle lanes, too."""
    check(function, inputs(shape, dtype), kernels=1)


def test_the_number_of_rows_may_be_a_symbol():
    given = inputs((6, 9, 32), torch.float32)
    for x in given:
        torch._dynamo.mark_dynamic(x, 0)
    check(normed_sum, given, kernels=1, dynamic=None)


def counts(function, *sizes):
    """Return the numbers of kernels without and with Bridge, for bfloat16."""
    given = [torch.empty(size, dtype=torch.bfloat16) for size in sizes]
    theirs = offline.compile_for_gpu(function, given)
    return theirs.n_kernels, offline.compile_for_gpu(function, given, compile_fx=bridge_backend).n_kernels


def test_so_many_loads_stay_in_a_loop():
    assert counts(normed_sum, (4096, 128, 64), (4096, 128)) == (2, 1)
    assert counts(normed_sum, (4096, 136, 64), (4096, 136)) == (2, 2)


def test_few_rows_of_much_are_left_to_more_programs():
    """Check that few rows with long sums are left to more programs.

    On an H100 one block took 5.3 us for what two kernels do in 3.9, and 2.1 us for 8 x 2048 (3.9).
    """
    assert counts(normed_sum, (1, 64, 4096), (1, 64)) == (2, 2)
    (group,) = bridge.report().groups
    assert group.reason is Reason.not_profitable and "1 programs lose the time" in group.detail
    assert counts(normed_sum, (1, 8, 2048), (1, 8)) == (2, 1)


def test_what_is_refused_with_sums_in_lanes_is_tried_without():
    """Check that a refused group is tried again without its sums in lanes: norm and gate fuse either way."""

    def gated(x, _):
        gate, up = normed_sum(x, None).chunk(2, -1)
        return torch.sigmoid(gate) * up

    assert counts(gated, (4096, 16, 4096), (4096, 16)) == (3, 1)
    assert counts(gated, (1, 64, 4096), (1, 64)) == (3, 2)
