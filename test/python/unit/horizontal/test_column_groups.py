"""Test which kernels have sums in groups of rows of another kernel, and what becomes of them."""

from __future__ import annotations

import contextlib

import pytest
import torch
from functions import norm
from schedules import look_at_gpu_schedule

from bridge import inductor
from bridge.horizontal.column_groups import Staged, orders_of_segments, put_in_order, stages_of, tiles_of_groups
from bridge.inductor.columns import column_sum, has_column_parts
from bridge.inductor.row_order import RowOrder

IMAGES, TOKENS, WIDTH = 64, 256, 1152
TILE = (IMAGES * TOKENS, WIDTH)


def of_the_same_rows(x, g):
    return norm(x), (x * g).sum(1)


def of_other_rows(x, g):
    """Add up columns of an input that no other kernel reads."""
    return norm(x), (g * g).sum(1)


def across(x, g):
    """Normalise rows that are columns of what is added up."""
    return norm(x), (x * g).sum(2)


def look(function, check):
    """Call `check` with the schedule and the kernels of a function's sums."""
    seen = []

    def find(schedule):
        found = [kernel for kernel in schedule if stages_of(kernel, *TILE) is not None]
        seen.append(found)
        check(schedule, found)

    look_at_gpu_schedule(function, [torch.empty(IMAGES, TOKENS, WIDTH) for _ in range(2)], find)
    assert seen


def test_a_kernel_of_the_same_rows_gives_a_tile():
    def check(schedule, found):
        (kernel,) = found
        assert tiles_of_groups(kernel, schedule) == [TILE]
        assert tiles_of_groups(kernel, [kernel]) == [], "a kernel is not beside itself"

    look(of_the_same_rows, check)


@pytest.mark.parametrize("function", [of_other_rows, across])
def test_a_kernel_of_other_rows_gives_none(function):
    def check(schedule, found):
        assert not any(tiles_of_groups(kernel, schedule) for kernel in schedule)

    look(function, check)


def test_a_kernel_of_a_sum_alone_leaves_its_second_stage():
    def check(schedule, found):
        (kernel,) = found
        stages = stages_of(kernel, *TILE)
        assert stages.before == [] and stages.after == inductor.loop_nodes(kernel)
        assert [one.node for one in stages.sums] == stages.after
        assert stages_of(kernel, TILE[0] // 2, TILE[1]) is None, "of another tile"

    look(of_the_same_rows, check)


def test_extremes_of_rows_of_squares_are_none_of_columns():
    """Check that extremes of rows of squares are not taken for extremes of columns.

    Of Chamfer distances both kernels have 2048 elements for each of 16 * 2048 results; in one they are far apart.
    """
    seen = []

    def find(schedule):
        found = [kernel for kernel in schedule if stages_of(kernel, 16 * 2048, 2048) is not None]
        seen.append((len(schedule), [tiles_of_groups(kernel, schedule) for kernel in found]))

    look_at_gpu_schedule(lambda x: (x.amin(-1), x.amin(-2)), [torch.empty(16, 2048, 2048)], find)
    assert seen == [(2, [[(16 * 2048, 2048)]])]


def test_both_stages_are_in_the_place_of_the_kernel():
    def check(schedule, found):
        (kernel,) = found
        place = schedule.index(kernel)
        changed = Staged(kernel, "first", "second", cost=0).in_schedule(schedule)
        assert changed[place : place + 2] == ["first", "second"] and len(changed) == len(schedule) + 1

    look(of_the_same_rows, check)


def of_segments(x, g):
    """Compute a norm of heads, sums over the tokens of all heads, and a copy."""
    heads = x.unflatten(-1, (32, 128))
    return heads * torch.rsqrt(heads.pow(2).mean(-1, keepdim=True) + 1e-6), (x * g).sum(0), x[:512] @ g[:512].T


def test_kernels_of_segments_have_the_order_of_a_sum_of_whole_rows():
    """Check that kernels of segments get the order of a sum of whole rows, until it is undone.

    A library call cannot, nor a sum of other columns.
    """
    seen = []

    def check(schedule):
        (kernel,) = (kernel for kernel in schedule if has_column_parts(kernel))
        (order,) = orders_of_segments(kernel, schedule)
        assert order == RowOrder((32, 8192), (1, 32), 128) and orders_of_segments(kernel, [kernel]) == []
        (part,) = inductor.loop_nodes(kernel)
        with contextlib.ExitStack() as undo:
            put = put_in_order(schedule, order, undo)
            assert kernel in put and 1 < len(put) < len(schedule)
            assert column_sum(part).groups == 32
        assert column_sum(part).groups == 1
        with contextlib.ExitStack() as undo:
            assert put_in_order([kernel], RowOrder((64, 8192), (1, 64), 64 + 1), undo) == []
        seen.append(order)

    look_at_gpu_schedule(of_segments, [torch.empty(8192, 32 * 128) for _ in range(2)], check)
    assert seen
