"""Test decisions by what a kernel keeps and moves: whether a row is kept, blocks of rows, and bytes."""

from __future__ import annotations

import pytest

from bridge.lowering.triton.profitability import (
    KeptRow,
    Row,
    block_of_long_row,
    block_of_rows_side_by_side,
    fits_in_registers,
    rows_and_warps,
    traffic,
    traffic_of_one,
)

#: Rows: enough for any block.
MANY = 1 << 20


@pytest.mark.parametrize(("registers", "fits"), [(None, False), (0, False), (1, True), (32768, True), (32769, False)])
def test_a_row_is_kept_up_to_half_the_registers(registers, fits):
    assert fits_in_registers(registers) is fits


def blocks(row, lanes, there=MANY):
    """Return the block of rows whose lanes all have an element."""
    return rows_and_warps(row, lanes, there, lanes)


@pytest.mark.parametrize(
    ("registers", "chosen"),
    [
        (0, None),
        (1, (1024, 2)),
        (64, (16, 2)),
        (96, (8, 2)),  # ten would fit, and blocks are powers of two
        (513, (1, 2)),
        (1024, (1, 2)),
        (1025, (1, 4)),
        (2048, (1, 4)),
        (2049, None),
    ],
)
def test_short_rows_share_a_block_and_long_ones_have_more_warps(registers, chosen):
    assert blocks(Row(registers), 4096) == chosen


@pytest.mark.parametrize(
    ("registers", "lanes", "chosen"),
    [
        (192, 128, (8, 4)),  # three tensors of 96 elements
        (192, 32, (16, 4)),  # four elements a thread, with 24 registers
        (384, 32, (8, 4)),  # more rows have more than 32
        (64, 64, (16, 2)),
        (64, 32, (32, 4)),
        (256, 256, (4, 2)),
        (257, 128, (4, 4)),
        (448, 64, (8, 4)),  # seven values for a lane of a head of 64
        (2048, 1024, (1, 4)),  # eight warps have four elements a thread
        (2048, 2048, (1, 4)),
    ],
)
def test_a_thread_has_elements_of_a_whole_load(registers, lanes, chosen):
    """Check that a thread has the elements of a whole load.

    DaViT's norms of 96 elements took 93 us in blocks of 4 rows, Inductor's 51.
    """
    assert blocks(Row(registers), lanes) == chosen


@pytest.mark.parametrize(
    ("registers", "lanes", "elements", "chosen"),
    [
        (256, 256, 130, (4, 1)),
        (256, 256, 171, (4, 2)),  # more than two thirds
        (128, 256, 130, (4, 1)),  # eight rows would be 64 elements a thread
        (512, 512, 266, (2, 1)),
        (1024, 1024, 514, (1, 1)),
        (2048, 2048, 1030, (1, 2)),
        (512, 1024, 577, (1, 1)),
        (1536, 512, 300, (1, 2)),  # three tensors of float32
        (64, 64, 40, (16, 2)),  # eight threads have a row: no warp is without elements
        (64, 64, 33, (16, 1)),  # a warp loads 32 elements at once
    ],
)
def test_lanes_without_elements_have_no_warps(registers, lanes, elements, chosen):
    """Check that lanes without elements have no warps.

    Rows of 130 elements took 36 us in four warps, two of which had none, on an H200, and take 26 in one.
    """
    assert rows_and_warps(Row(registers), lanes, MANY, elements) == chosen


@pytest.mark.parametrize("elements", [130, 256])
def test_few_rows_have_all_warps(elements):
    assert rows_and_warps(Row(256), 256, 2047, elements) == (4, 4)


def test_few_longer_rows_keep_their_threads():
    """Check that few longer rows keep small blocks, or more warps, as in decoding: else most multiprocessors idle."""
    assert [blocks(Row(448), 64, there) for there in (40, 1023, 1024)] == [(2, 4), (2, 4), (8, 4)]
    assert [blocks(Row(2048), 1024, there) for there in (16, 512)] == [(1, 8), (1, 4)]
    assert blocks(Row(64), 64, 16) == (16, 4)


@pytest.mark.parametrize(("lanes", "chosen"), [(32, (4, 4)), (64, (2, 4)), (128, (1, 4)), (512, (1, 4))])
def test_a_block_has_no_more_threads_than_elements_of_a_vector(lanes, chosen):
    """Check that a block has no more threads than a vector has elements, as the row's loop is unrolled.

    Threads beyond them would do the same again.
    """
    assert blocks(Row(1024, unrolled=True), lanes) == chosen


@pytest.mark.parametrize(
    ("registers", "lanes", "chosen"),
    [(64, 4096, (16, 4)), (2049, 64, (2, 4)), (16384, 1024, (1, 8)), (16385, 1024, (1, 16)), (65536, 4096, (1, 16))],
)
def test_lanes_that_keep_states_have_warps_for_them(registers, lanes, chosen):
    """Check that lanes that keep states have warps for them: in one warp a thread had 32 lanes, and spilled."""
    assert blocks(Row(registers, keeps_states=True), lanes) == chosen


@pytest.mark.parametrize(
    ("registers", "lanes", "chosen"),
    [(2048, 1024, (1, 8)), (2049, 256, None), (2049, 512, (1, 4)), (2049, 1024, (1, 8)), (65536, 4096, (1, 8))],
)
def test_long_rows_of_sums_in_lanes_have_several_warps(registers, lanes, chosen):
    """Check that long rows of sums in lanes have several warps.

    A logsumexp of products in one warp spilled 978 words, and took 39 s to compile.
    """
    assert blocks(Row(registers, unrolled=True), lanes) == chosen


@pytest.mark.parametrize(
    ("elements", "there", "chosen"),
    [
        (10000, MANY, (1, 8)),
        (10923, MANY, None),  # more than two thirds of 16384 lanes
        (10000, 511, None),
    ],
)
def test_long_rows_with_few_elements_have_fewer_warps(elements, there, chosen):
    assert block_of_long_row(KeptRow(8192, 1), [elements], there) == chosen


@pytest.mark.parametrize(
    ("row", "there", "chosen"),
    [
        (KeptRow(4096, 1), MANY, (1, 4)),
        (KeptRow(4096, 1), 511, None),
        (KeptRow(8192, 2), MANY, None),
        (KeptRow(12288, 3), MANY, None),  # 48 of each thread in 8 warps
        (KeptRow(12289, 3), MANY, (1, 16)),
    ],
)
def test_rows_of_one_buffer_have_fewer_warps_and_those_of_many_registers_more(row, there, chosen):
    """Check the warps of rows of 8192 lanes: of a gradient with 255 registers a thread and eight warps, 18 spilled."""
    assert block_of_long_row(row, [6000], there) == chosen


def test_one_kernel_touches_each_buffer_once():
    kernels = [{"x": 100, "y": 10}, {"x": 60, "z": 5}]
    assert traffic(kernels) == 175
    assert traffic_of_one(kernels) == 115


def test_no_kernels_move_nothing():
    assert (traffic([]), traffic_of_one([])) == (0, 0)


@pytest.mark.parametrize(
    ("block", "lanes", "registers", "chosen"),
    [
        ((2, 4), 512, 256, (32, 8)),
        ((4, 4), 256, 256, (32, 4)),
        ((4, 4), 256, 512, (32, 8)),
        ((1, 8), 1024, 512, (16, 8)),  # 32 rows would be 64 elements a thread of 16 warps
        ((1, 8), 1024, 1536, (8, 8)),  # rows and warps are powers of two
        ((1, 16), 65536, 65536, (1, 16)),
        ((1, 4), 128, 128, (64, 4)),
        ((1, 4), 128, 129, (32, 4)),
        ((2, 1), 64, 64, (64, 4)),
        ((16, 4), 64, 192, (64, 4)),
        ((16, 4), 32, 96, (64, 2)),
        ((64, 4), 16, 16, (64, 2)),
        ((128, 4), 8, 8, (128, 2)),
    ],
)
def test_rows_side_by_side_have_a_sector_in_one_block(block, lanes, registers, chosen):
    assert block_of_rows_side_by_side(block, lanes, registers, MANY) == chosen


def test_few_rows_side_by_side_have_smaller_blocks():
    assert block_of_rows_side_by_side((16, 4), 32, 96, 4096) == (32, 4)
