"""What is computed once for all lanes, and read by a kernel that reduces nothing: one kernel, against float64."""

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


def streams(x, gates):
    """Each of the streams gets the sum of all, which is one row."""
    mixed = (wide(x) * wide(gates).softmax(-1)[..., None]).sum(1, keepdim=True)
    return x + mixed


def streams_and_sum(x, gates):
    """The sum is returned, and stored once."""
    mixed = (wide(x) * wide(gates).softmax(-1)[..., None]).sum(1, keepdim=True)
    return x + mixed, mixed


def inputs(dtype):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(size, generator=generator).to(dtype) for size in ((6, 4, 40), (6, 4))]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_sum_that_all_streams_get_is_in_their_kernel(dtype):
    check(streams, inputs(dtype), kernels=1)


def test_the_rows_may_be_symbols():
    given = inputs(torch.float32)
    for x in given:
        torch._dynamo.mark_dynamic(x, 0)
    check(streams, given, kernels=1, dynamic=None)


def test_what_is_returned_is_not_stored_by_each_stream():
    check(streams_and_sum, inputs(torch.float32), kernels=2)


def test_the_scale_of_a_channel_is_in_the_kernel_that_pools_it():
    def pooled(x, weight, bias):
        return functional.avg_pool2d(functional.silu(functional.group_norm(x, 32, weight, bias)), 2)

    given = [torch.empty(size, dtype=torch.bfloat16) for size in ((16, 256, 64, 64), (256,), (256,))]
    assert offline.compile_for_gpu(pooled, given).n_kernels == 4
    assert offline.compile_for_gpu(pooled, given, compile_fx=bridge_backend).n_kernels == 2


def test_the_report_says_that_lanes_would_store_it_again():
    given = [torch.empty(size, dtype=torch.bfloat16) for size in ((8192, 4, 1024), (8192, 4))]
    assert offline.compile_for_gpu(streams_and_sum, given, compile_fx=bridge_backend).n_kernels == 2
    (group,) = bridge.report().groups
    found = [*group.apart, *([(group.reason, group.detail)] if group.reason else [])]
    assert any(reason is Reason.not_liftable and "each store the same element" in detail for reason, detail in found)
