"""Test which 16-bit values are read together with what another kernel has made of them."""

from __future__ import annotations

import pytest
import torch
from schedules import look_at_gpu_schedule

from bridge import inductor
from bridge.scheduling.grouping import form_groups
from bridge.scheduling.read_again import OUTSIDE, buffers_read_again


def weighted_by_sums(x, dtype=torch.bfloat16):
    """Weight rows by a softmax of their sums: a sum, the extremes of the sums, and both for each element."""
    sums = x.sum(-1, keepdim=True, dtype=dtype)
    return (x * torch.softmax(sums.float(), 1).to(x.dtype)).sum(1)


def scaled_by_largest_sum(x):
    """Scale rows by the largest of their sums, which alone is read with them."""
    return x * x.sum(-1, keepdim=True).amax(1, keepdim=True)


def multiplied(x, w):
    """Add to a value what a library call makes of its norm: a residual."""
    sums = x + x.flip(0)
    normed = sums * torch.rsqrt(sums.float().pow(2).mean(-1, keepdim=True) + 1e-6).to(x.dtype)
    return (normed @ w) + sums


def found(function, *inputs, positions=None, kept=frozenset()):
    """Return what is read again in the schedule of a function; positions: of the group, default all kernels."""
    results = []

    def look(schedule):
        group = range(len(schedule)) if positions is None else positions
        results.append(buffers_read_again(group, schedule))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inductor, "kept_buffers", lambda: kept)
        look_at_gpu_schedule(function, inputs, look)
    return results[0]


ROWS = torch.empty(2, 16, 128, dtype=torch.bfloat16)


@pytest.mark.parametrize(("positions", "number"), [(None, 2), ([0, 1], OUTSIDE), ([1, 2], None), ([0, 2], None)])
def test_a_softmax_reads_its_elements_and_their_extremes(positions, number):
    expected = {} if number is None else {"buf0": frozenset({number})}
    assert found(weighted_by_sums, ROWS, positions=positions) == expected


def test_a_value_in_32_bits_is_the_same_for_all():
    assert found(lambda x: weighted_by_sums(x, torch.float32), ROWS) == {}


def test_a_value_with_one_reader_is_not_read_again():
    assert found(scaled_by_largest_sum, ROWS) == {}


def test_a_library_call_has_its_own_errors():
    square = torch.empty(64, 64, dtype=torch.bfloat16)
    assert found(multiplied, square, square) == {}


@pytest.mark.parametrize(("kept", "expected"), [({"buf0"}, {}), ({"buf0", "buf1"}, {"buf0": frozenset({OUTSIDE})})])
def test_the_backward_reads_what_the_forward_keeps(kept, expected):
    assert found(scaled_by_largest_sum, ROWS, kept=frozenset(kept)) == expected


def test_groups_of_a_schedule_have_it():
    """Test the positions that Bridge itself forms."""
    seen = []

    def look(schedule):
        (group,), _ = form_groups(schedule, 64)
        seen.append(buffers_read_again(group.positions, schedule))

    look_at_gpu_schedule(weighted_by_sums, [ROWS], look)
    assert seen == [{"buf0": frozenset({2})}]
