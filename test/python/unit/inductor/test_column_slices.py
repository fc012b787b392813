"""Test slices of a tile's rows: how wide they are, and what loops go over them."""

from __future__ import annotations

import contextlib

import pytest
import torch
from schedules import look_at_column_part

from bridge import inductor
from bridge.inductor import tiles
from bridge.inductor.column_slices import Slices, put_in_slices, slices_of_row
from bridge.reasons import Unsupported

ROWS, COLUMNS = 4096, 3072
SLICES = Slices(ROWS, COLUMNS, 32, 1024)


@pytest.mark.parametrize(
    ("columns", "slices"),
    [
        (3072, 3),
        (768, 3),
        (4608, 9),
        (4096, 4),
        (1280, 5),
        (1024, 1),
        (256, 1),
        (1152, 1),
        (384, 1),
        (1000, 1),
        (8192, 8),
    ],
)
def test_a_slice_has_as_many_columns_as_a_power_of_two(columns, slices):
    assert slices_of_row(columns) == slices


def of_both(x, g):
    return x * g + 1, (x * g).sum(0)


def of_rows(x, g):
    return x.softmax(-1), (x * g).sum(0)


def look(function, check):
    look_at_column_part(function, [torch.empty(ROWS, COLUMNS) for _ in range(2)], check)


def test_loops_go_over_the_rows_of_a_slice_and_what_they_access_is_the_same():
    def check(part, others):
        node, _ = others
        before = inductor.node_sizes(node)
        with contextlib.ExitStack() as undo:
            put_in_slices(node, SLICES, undo)
            assert tuple(map(int, inductor.node_sizes(node)[0])) == (128, 3, 32, 1024) == SLICES.sizes
            (stored,) = inductor.buffers_written(node)
            (place,) = tiles.places(inductor.node_body(node), stored, ROWS * 3, 1024)
            row = {tiles.ROW: 3 * 32 + 32 + 5, tiles.COLUMN: 7}  # the sixth row of the second slice of the second block
            assert place.subs(row) == (32 + 5) * COLUMNS + 1024 + 7
        assert inductor.node_sizes(node) == before

    look(of_both, check)


def test_a_node_that_reduces_rows_has_no_slices():
    def check(_, others):
        reducing = next(node for node in others if inductor.node_sizes(node)[1])
        with contextlib.ExitStack() as undo, pytest.raises(Unsupported, match="not over slices of 1024 columns"):
            put_in_slices(reducing, SLICES, undo)

    look(of_rows, check)
