"""Test which kernels store the rows of a tile in another order, and that they can go over them in that of the tile."""

from __future__ import annotations

import contextlib

import pytest
import torch
from schedules import look_at_gpu_schedule

from bridge import inductor
from bridge.horizontal.column_orders import orders_of_writers, turn
from bridge.horizontal.column_sums import adds_up_columns
from bridge.inductor.row_order import RowOrder

BATCH, HEADS, TOKENS = 4, 8, 2048


def of_heads(x, y):
    """Store the rows of all tokens of a head, and add up those of all heads of a token."""
    stored = torch.sin(torch.roll(x, 1, -1)).contiguous()
    turned = stored.transpose(1, 2) * y
    return stored, turned * turned.sum(-1, keepdim=True), turned.flatten(0, 2).sum(0)


def look(width, check, function=of_heads):
    """Call `check` with (kernels that add up columns, the schedule)."""
    seen = []

    def find(schedule):
        kernels = [kernel for kernel in schedule if adds_up_columns(kernel)]
        seen.append(kernels)
        check(kernels, schedule)

    shapes = (BATCH, HEADS, TOKENS, width), (BATCH, TOKENS, HEADS, width)
    look_at_gpu_schedule(function, [torch.empty(shape) for shape in shapes], find)
    assert seen and seen[0]


def test_rows_of_heads_are_turned_until_it_is_undone():
    def check(kernels, schedule):
        ((writer, order),) = orders_of_writers(kernels[0], schedule)
        assert order == RowOrder((BATCH, TOKENS, HEADS), (HEADS * TOKENS, 1, TOKENS), 128)
        (node,) = inductor.loop_nodes(writer)
        before = inductor.node_body(node)
        with contextlib.ExitStack() as undo:
            assert turn([(writer, order)], undo) == [writer]
            assert [int(size) for size in inductor.node_sizes(node)[0]] == [BATCH, TOKENS, HEADS, 128]
            assert orders_of_writers(kernels[0], schedule) == [], "they are in that order"
        assert inductor.node_body(node) is before

    look(128, check)


def in_order(x, y):
    """Store and add up the same rows in the same order."""
    stored = torch.sin(torch.roll(x, 1, -1))
    turned = stored * y.view_as(stored)
    return stored, turned * turned.sum(-1, keepdim=True), turned.flatten(0, 2).sum(0)


@pytest.mark.parametrize(("width", "function"), [(8, of_heads), (128, in_order)])
def test_what_is_narrow_or_in_order_is_not_turned(width, function):
    """Check that rows that are narrow or in order are not turned: for 32 bytes of a row, memory would read 64."""

    def check(kernels, schedule):
        assert [pair for kernel in kernels for pair in orders_of_writers(kernel, schedule)] == []

    look(width, check, function)
