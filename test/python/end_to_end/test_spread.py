"""Test that what is computed once for all lanes is in the kernel that reads it and reduces nothing, against float64."""

from __future__ import annotations

import pytest
import torch
from programs import wide
from rechecked import check
from torch._inductor import config
from torch.nn import functional

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.reasons import Reason


def streams(x, gates):
    """Add the sum of all streams, which is one row, to each of them."""
    mixed = (wide(x) * wide(gates).softmax(-1)[..., None]).sum(1, keepdim=True)
    return x + mixed


def streams_and_sum(x, gates):
    """Add the sum of all streams to each, and return the sum, which is stored once."""
    mixed = (wide(x) * wide(gates).softmax(-1)[..., None]).sum(1, keepdim=True)
    return x + mixed, mixed


def scaled_and_scale(x, gate):
    scale = torch.sigmoid(wide(gate)) + 1
    return x * scale[:, None], scale


def shares_and_scaled(weights, x):
    """Return what the shares of a few weights are of, a row of x with their sum, and the sum: 4 of 40 lanes each."""
    total = wide(weights).sum(-1, keepdim=True)
    return wide(weights) / total, wide(x) * total, total


def unit_vectors(x):
    length = wide(x).pow(2).sum(-1).add(1e-8).sqrt()
    return wide(x) / length[..., None], length


def gate_of_a_product(a, b, x, w):
    """Gate by a product that nothing else reads, so that Inductor overwrites it; a later product needs more memory."""
    gate = torch.sigmoid(a @ b)
    gated = x * gate[..., None]
    return gate, gated, (gated.flatten(1) @ w).amax(-1)


def scaled_by_what_decays(x, scale):
    scale.mul_(0.9)
    return x * scale[:, None]


def largest_share(x):
    """Compute one number of all channels' sums; a deterministic kernel has all of them in its one row."""
    sums = wide(x).sum((0, 2))
    return (sums / sums.norm()).amax()


def inputs(dtype):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(size, generator=generator).to(dtype) for size in ((6, 4, 40), (6, 4))]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_sum_that_all_streams_get_is_in_their_kernel(dtype):
    check(streams, inputs(dtype), kernels=1)


@pytest.mark.parametrize("function", [streams, streams_and_sum])
def test_the_rows_may_be_symbols(function):
    given = inputs(torch.float32)
    for x in given:
        torch._dynamo.mark_dynamic(x, 0)
    check(function, given, kernels=1, dynamic=None)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_what_is_returned_is_stored_by_the_first_stream(dtype):
    check(streams_and_sum, inputs(dtype), kernels=1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_what_a_shorter_row_needs_too_is_in_the_lanes_of_the_longer_one(dtype):
    """Check rows of 4 and of 40: the first lanes of the longer ones store the shorter ones, and all need one sum."""
    x, weights = inputs(dtype)
    check(shares_and_scaled, [weights.abs() + 1, x[:, 0]], kernels=1)


def test_what_is_returned_may_be_of_lanes_that_are_symbols():
    given = [torch.randn(12, 40), torch.randn(12)]
    torch._dynamo.mark_dynamic(given[0], 1)
    check(scaled_and_scale, given, kernels=1, dynamic=None)


def test_the_scale_of_a_channel_is_in_the_kernel_that_pools_it():
    def pooled(x, weight, bias):
        return functional.avg_pool2d(functional.silu(functional.group_norm(x, 32, weight, bias)), 2)

    given = [torch.empty(size, dtype=torch.bfloat16) for size in ((16, 256, 64, 64), (256,), (256,))]
    assert offline.compile_for_gpu(pooled, given).n_kernels == 4
    assert offline.compile_for_gpu(pooled, given, compile_fx=bridge_backend).n_kernels == 2


def test_lengths_of_vectors_are_stored_beside_what_they_scale():
    """Check that a vector's length is stored in the kernel that scales by it: three lanes compute it, one stores it."""
    vectors = torch.empty((65536, 64, 3), dtype=torch.bfloat16)
    assert offline.compile_for_gpu(unit_vectors, [vectors]).n_kernels == 2
    ours = offline.compile_for_gpu(unit_vectors, [vectors], compile_fx=bridge_backend)
    assert ours.n_kernels == 1
    check(unit_vectors, [torch.randn(6, 5, 3)], kernels=1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_first_lane_stores_one_number(dtype):
    """Check that one number is stored by the first lane: its address is no tile, and its mask is one."""
    with config.patch(deterministic=True):
        check(largest_share, [torch.randn(3, 5, 187).to(dtype)], kernels=1)


def test_the_first_lane_overwrites_nothing_that_others_load():
    """Check that the first lane does not overwrite what others load.

    Lanes of one row are in several programs: a later one would load the result instead.
    """
    given = [torch.empty(size) for size in ((4096, 512), (512, 4096), (4096, 4096, 3), (12288, 32768))]
    theirs = offline.compile_for_gpu(gate_of_a_product, given)
    ours = offline.compile_for_gpu(gate_of_a_product, given, compile_fx=bridge_backend)
    assert (theirs.n_kernels, ours.n_kernels) == (3, 2)
    assert "in_out_ptr" in theirs.code and "in_out_ptr" not in ours.code


def test_what_the_program_overwrites_stays_apart():
    given = [torch.empty(size) for size in ((65536, 128), (65536,))]
    assert offline.compile_for_gpu(scaled_by_what_decays, given, compile_fx=bridge_backend).n_kernels == 2
    (group,) = bridge.report().groups
    found = [*group.apart, *([(group.reason, group.detail)] if group.reason else [])]
    assert any(reason is Reason.not_liftable and "would overwrite" in detail for reason, detail in found)
