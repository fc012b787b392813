"""Test where C++ loops go across memory, and what of it the nearest cache holds."""

from __future__ import annotations

import pytest
import torch
from schedules import look_at_schedule
from uncompiled import without_cpp

import bridge
from bridge.inductor import cache_lines


def column_sums(x):
    return x.sum(0)


def standardised(x):
    """Normalise columns: Inductor's last loop goes along memory, and in one nest with the sums across it."""
    y = x - x.mean(0)
    return y * torch.rsqrt(y.square().mean(0) + 1e-5)


@pytest.mark.parametrize(
    ("function", "shape", "across", "held"),
    [
        (lambda x: x + 1, (64, 1000), 0, True),
        (lambda x: x.sum(1), (64, 1000), 0, True),
        (lambda x: x.t().contiguous(), (64, 1000), 64 * 1000 * 4, True),  # there is no column to hold
        (column_sums, (500, 100), 500 * 100 * 4, True),
        (column_sums, (640, 100), 640 * 100 * 4, False),
        (column_sums, (64, 1024), 64 * 1024 * 4, False),  # 4096 bytes apart: all in one set
        (column_sums, (64, 1008), 64 * 1008 * 4, True),  # 63 lines apart
        (column_sums, (64, 5000), 64 * 5000 * 4, False),  # places in memory beyond the next cache
        (column_sums, (32, 8056), 32 * 8056 * 4, True),  # few of them
        (column_sums, (64, 12), 0, True),  # nearer than a line
    ],
)
def test_what_is_accessed_across_memory(function, shape, across, held):
    found: list[tuple[int, bool]] = []

    def look(kernels):
        found.extend((cache_lines.bytes_across(kernel), cache_lines.holds_columns(kernel)) for kernel in kernels)

    look_at_schedule(function, [torch.empty(shape)], look)
    assert found == [(across, held)]


@pytest.mark.parametrize(
    ("shape", "unordered"),
    [
        ((64, 300, 64), 64 * 300 * 64 * 4),
        ((64, 30, 2048), 0),  # pieces of 8192 bytes
        ((8, 30, 64), 0),  # a cache holds all of it
        ((1, 9000, 64), 0),  # there is one order
    ],
)
def test_what_is_accessed_in_another_order(shape, unordered):
    found: list[int] = []
    look_at_schedule(
        lambda x: x.transpose(0, 1).contiguous() + 1,
        [torch.empty(shape)],
        lambda kernels: found.extend(map(cache_lines.bytes_out_of_order, kernels)),
    )
    assert found == [unordered]


def biased_windows(scores, bias, mask):
    """Compute attention weights of images in windows, with a bias for each head and a mask for each window."""
    _, heads, tokens, _ = scores.shape
    biased = (scores + torch.sigmoid(bias)).view(-1, len(mask), heads, tokens, tokens) + mask[None, :, None]
    return torch.softmax(biased.view(scores.shape).float(), -1).to(scores.dtype)


def test_short_rows_are_gone_over_in_the_order_of_memory(compiler):
    """Check that short rows are gone over in the order of memory.

    In the order of heads each was 64 KB behind the last one, and they took 2.6 of the time.
    """
    shapes = (64, 8, 64, 64), (8, 64, 64), (16, 64, 64)
    with without_cpp():
        compiler(biased_windows, backend="bridge")(*(torch.randn(shape).bfloat16() for shape in shapes))
    (group,) = bridge.report().groups
    assert not group.fused and group.reason is bridge.Reason.not_profitable and "as in memory" in group.detail


def stored_and_transposed(a, b, places, weight):
    """Return sums of residuals, and the transposed norm of their channels."""
    total = a + b + places
    return total, (total.transpose(-1, -2) * weight).contiguous()


def test_loops_of_a_transposed_store_do_not_take_over_what_went_along_memory(compiler):
    """Check that the loops of a transposed store do not replace those along memory.

    The nest took 2.3 of the time: all its loads and stores went across memory.
    """
    with without_cpp():
        compiler(stored_and_transposed, backend="bridge")(
            *(torch.randn(shape) for shape in ((56, 63, 128), (56, 63, 128), (63, 128), (128, 1)))
        )
    (group,) = bridge.report().groups
    assert group.reason is bridge.Reason.not_profitable and "more than is saved" in group.detail


@pytest.mark.parametrize(("shape", "fused"), [((128, 1000), True), ((512, 1000), False), ((64, 1024), False)])
def test_loops_do_not_go_across_more_than_the_cache_holds(shape, fused, compiler):
    """Check that loops do not go across more memory than the cache holds.

    It took 1.4 to 1.5 of the time: columns that the cache had lost were gone through several times.
    """
    with without_cpp():
        compiler(standardised, backend="bridge")(torch.randn(shape))
    (group,) = bridge.report().groups
    assert group.fused == fused, group
    if not fused:
        assert group.reason is bridge.Reason.not_profitable and "no cache holds" in group.detail
