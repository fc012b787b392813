"""Test which kernels may add up columns of their rows."""

from __future__ import annotations

import functools
from types import SimpleNamespace

import pytest
import torch
from emitted import run_emitted
from functions import norm
from schedules import look_at_gpu_schedule

import bridge
from bridge.backend import bridge as backend
from bridge.horizontal import column_sums
from bridge.horizontal.column_sums import adds_up_columns, find_tile, goes_over, have_same_elements
from bridge.reasons import Reason, Unsupported
from bridge.support.error_boundary import boundary


def sums(x, g, w):
    h = norm(x, w)
    return h, (h * g).sum(0), (x * w).sum(0), x.sum()


def test_the_kernels_of_a_tile():
    """Check the kernels of a tile, which do not include a sum of all elements."""
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


def scaled(x, g, *scales):
    y = x * sum(scales)
    return y, (y * g).sum(0)


def test_numbers_of_rows_take_no_register_of_each_lane(monkeypatch):
    """Check that inputs with one number for a row do not count as registers of each lane.

    A block of DiT reads nine tensors and the statistics of its rows: its sums of columns stayed apart.
    """
    monkeypatch.setattr(column_sums, "MOST_LOADED", 2)
    tiles: list = []

    def look(schedule):
        (seed,) = [position for position, kernel in enumerate(schedule) if adds_up_columns(kernel)]
        tiles.append(find_tile(schedule, seed))

    rows = [torch.empty(8192, 1)] * 3
    look_at_gpu_schedule(scaled, [torch.empty(8192, 1024), torch.empty(8192, 1024), *rows], look)
    assert len(tiles[0].kernels) == 2


def product_and_columns(x, bias):
    gate, up = x.chunk(2, -1)
    product = torch.nn.functional.silu(gate + bias) * up
    return product, product.amax(0), (product * product).sum(0)


def test_the_columns_of_a_kernel_that_goes_over_columns_first_are_of_their_own_rows():
    """Check that a kernel that goes over columns first keeps the loops of its own product.

    The sums got those of a tile, rows first, and another's product.
    """
    given = [torch.randn(640, 16), torch.randn(8)]
    ours = functools.partial(backend, options={"strict": True, "force_fusion": True})
    found, _ = run_emitted(product_and_columns, given, ours)
    assert bridge.report().kernels_after < bridge.report().kernels_before
    for one, other in zip(found, product_and_columns(*(t.double() for t in given)), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("tokens", "fits"), [(65, False), (64, True)])
def test_rows_that_end_within_a_loop_of_heads_are_of_no_tile(tokens, fits):
    """Check that rows that end within a loop of heads are in no tile.

    2 images of 65 tokens are no multiple of the 4 heads in the outer loop: there was no code.
    """
    seen: list[bool] = []

    def look(schedule):
        seen.extend(goes_over(kernel, 2 * tokens, 16) for kernel in schedule)

    look_at_gpu_schedule(lambda x: x.transpose(1, 2).contiguous() * 2, [torch.empty(2, tokens, 4, 4)], look)
    assert seen == [fits]


@pytest.mark.parametrize(("block", "ended"), [(8, 1), (4, 0)])
def test_kernels_of_nothing_but_sums_of_a_block_are_ended_by_it(monkeypatch, block, ended):
    """Check that kernels of nothing but a block's sums are ended by the block.

    A kernel that has more to do adds up its parts, and goes on with the sums.
    """
    monkeypatch.setattr(column_sums.sums, "is_ended_by_block", lambda one, block: block == 8)
    monkeypatch.setattr(column_sums.inductor, "loop_nodes", lambda kernel: kernel)
    monkeypatch.setattr(column_sums.inductor, "operation_names", lambda kernel: {node.get_name() for node in kernel})
    first, second, more = (SimpleNamespace(get_name=lambda name=name: name) for name in ("op1", "op2", "op3"))
    found = [SimpleNamespace(total=total) for total in (first, second)]
    tile = column_sums.Tile(64, 16, [], found, [[first], [second, more]])
    in_blocks = column_sums.in_blocks_of(tile, block)
    assert in_blocks.ended == ([first],) * ended and in_blocks.readers == tile.readers[ended:]
    assert in_blocks.sums_in_parts == found[ended:] and tile.sums_in_parts == found


def test_what_adds_up_no_columns_has_no_tile():
    """Check that a kernel without sums of columns has no tile.

    Sums in one stage that got no loops of a tile were an error, not a refusal.
    """

    def look(schedule):
        with pytest.raises(Unsupported) as error:
            column_sums.only_extents(schedule[0])
        assert error.value.reason is Reason.no_common_band
        seen.append(schedule)

    seen: list = []
    look_at_gpu_schedule(norm, [torch.empty(64, 1024)], look)
    assert seen


def turned(x, g):
    total = (x * g).sum(1)
    return total * 2, total.flip(0), total.t()


def test_kernels_that_read_a_sum_in_other_orders_have_not_its_elements():
    """Check that kernels that read a sum in another order do not have its elements, and may not join its kernel.

    Of the first stage they have nothing.
    """
    seen: list = []

    def look(schedule):
        parts, total, readers = schedule
        seen.extend(have_same_elements(kernels) for kernels in ([total, readers], [parts, readers]))

    look_at_gpu_schedule(turned, [torch.randn(64, 512, 64)] * 2, look)
    assert seen == [False, True]


def test_a_tile_is_tried_in_short_steps_last_and_not_where_kernels_are_tuned():
    """A kernel that Inductor times several configurations of has none of Bridge's."""
    tile = column_sums.Tile(8192, 4096, [], [], [])
    usual, own = column_sums.ways_of(tile)
    assert (usual.step(64), own.step(64)) == (2, 1)
    with torch._inductor.config.patch(max_autotune_pointwise=True):
        assert column_sums.ways_of(tile) == [tile]


def test_a_tile_of_very_short_rows_is_tried_in_long_steps_first():
    tile = column_sums.Tile(1 << 20, 16, [], [], [])
    assert [one.own_step for one in column_sums.ways_of(tile)] == [64, None, 4]


def crossed(x, first, gradient, scale):
    """Return the gradients of `first * (x * w).sum(-1) + x`, as DCN has it: sums of columns wait for those of rows."""
    along = (gradient * first).sum(-1, keepdim=True)
    return along * scale + gradient, (along * x).sum(0), gradient.sum(0)


def test_sums_of_columns_scaled_by_sums_of_rows_are_of_the_same_tile():
    """No buffer of the size of the tile is read by both: the one reads a number of each row that the other has made."""
    tiles: list = []

    def look(schedule):
        seeds = [position for position, kernel in enumerate(schedule) if adds_up_columns(kernel)]
        tiles.append([find_tile(schedule, seed) for seed in seeds])

    look_at_gpu_schedule(crossed, [torch.empty(16384, 1024) for _ in range(3)] + [torch.empty(1024)], look)
    assert {len(tile.sums) for tile in tiles[0]} == {2}
