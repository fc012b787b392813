"""Which kernels may add up columns of their rows, and in blocks of how many rows."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from functions import norm
from schedules import look_at_gpu_schedule

from bridge.horizontal import column_sums
from bridge.horizontal.column_sums import (
    Tile,
    adds_up_columns,
    blocks_to_try,
    find_tile,
    parts_bytes,
)
from bridge.lowering.triton.columns import MOST_PARTS
from bridge.reasons import Reason, Unsupported
from bridge.support.error_boundary import boundary


def tile(rows, columns=4096, sums=1):
    kernel = SimpleNamespace(get_name=lambda: "op0")
    return Tile(rows, columns, [kernel], [SimpleNamespace(rows=rows, groups=1)] * sums, [])


@pytest.mark.parametrize(
    ("rows", "fewest"), [(8192, 8), (2048, 8), (1024, 4), (512, 4), (1 << 18, 128), (1 << 20, 512)]
)
def test_there_is_a_program_for_each_multiprocessor(rows, fewest):
    blocks = blocks_to_try(tile(rows), 132)
    assert blocks[0] == fewest
    assert all(0.9 * 132 <= rows / block <= MOST_PARTS for block in blocks)
    assert blocks == sorted(blocks)


def test_too_few_rows_are_refused():
    with pytest.raises(Unsupported, match="too few"):
        blocks_to_try(tile(256), 132)


def test_each_sum_begins_where_memory_is_aligned():
    """2047 blocks of one column would end within 16 bytes."""
    assert blocks_to_try(tile(2047 * 16, 1), 132)
    with pytest.raises(Unsupported):
        blocks_to_try(tile(2047 * 16 - 1, 1, 2), 2047 * 4)
    assert all(-(-8190 // block) * 6 % 4 == 0 for block in blocks_to_try(tile(8190, 6, 2), 132))


def test_partial_sums_take_four_bytes_for_each_block_and_column():
    assert parts_bytes(tile(2050, 4096, 3), 16) == 129 * 4096 * 4 * 3


def sums(x, g, w):
    h = norm(x, w)
    return h, (h * g).sum(0), (x * w).sum(0), x.sum()


def test_the_kernels_of_a_tile():
    """The sum of all elements is none of columns."""
    seen: list = []

    def look(schedule):
        seeds = [position for position, kernel in enumerate(schedule) if adds_up_columns(kernel)]
        with boundary(True, seen.append):
            found = [find_tile(schedule, seed) for seed in seeds]
        seen.append([(one.rows, one.columns, len(one.sums)) for one in found])

    look_at_gpu_schedule(sums, [torch.randn(2048, 4096), torch.randn(2048, 4096), torch.randn(4096)], look)
    assert len(seen) == 1 and set(seen[0]) == {(2048, 4096, 2)}


def wide(x, g):
    return norm(x), (x * g).sum(0)


def test_a_program_has_a_whole_row(monkeypatch):
    monkeypatch.setattr(column_sums, "MOST_COLUMNS", 1000)
    refused = []

    def look(schedule):
        for position in [p for p, kernel in enumerate(schedule) if adds_up_columns(kernel)]:
            with pytest.raises(Unsupported) as error:
                find_tile(schedule, position)
            refused.append(error.value.reason)

    look_at_gpu_schedule(wide, [torch.empty(8192, 1024)] * 2, look)
    assert refused == [Reason.extents_do_not_agree]


@pytest.mark.parametrize(("columns", "sums", "best"), [(1024, 1, 8), (4096, 3, 16)])
def test_few_programs_have_short_blocks_unless_what_they_leave_takes_longer(monkeypatch, columns, sums, best):
    """Of 2048 rows, 128 programs of 16 go through their rows one by one; 256 leave twice as many partial sums."""
    one = tile(2048, columns, sums)
    monkeypatch.setattr(column_sums, "_work", lambda kernels, tile: (2048 * columns * 6, 0))
    assert column_sums.fastest_first(one, blocks_to_try(one, 132), 132)[0] == best
