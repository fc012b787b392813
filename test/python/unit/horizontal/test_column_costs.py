"""Tell what kernels over a tile cost: in blocks of how many rows, and beside those that they replace."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import sympy
import torch

from bridge.horizontal import column_costs
from bridge.horizontal.column_costs import Work, blocks_to_try, fastest_first, parts_bytes
from bridge.horizontal.column_sums import Tile, in_short_steps
from bridge.lowering.triton.column_loads import rows_of_long_step
from bridge.lowering.triton.columns import MOST_PARTS
from bridge.reasons import Unsupported


def tile(rows, columns=4096, sums=1):
    kernel = SimpleNamespace(get_name=lambda: "op0", get_device=lambda: torch.device("cuda"))
    return Tile(rows, columns, [kernel], [SimpleNamespace(rows=rows, groups=1, part=object())] * sums, [])


@pytest.fixture(autouse=True)
def h100(monkeypatch):
    """Have the memory of an H100, and rows without gaps."""
    monkeypatch.setattr(column_costs.inductor, "memory_bandwidth", lambda device: column_costs.BANDWIDTH)
    monkeypatch.setattr(column_costs.inductor, "bytes_beside", lambda kernel, rows: 0)


@pytest.mark.parametrize(
    ("rows", "fewest"), [(8192, 8), (2048, 8), (1024, 4), (512, 4), (1 << 18, 128), (1 << 20, 512)]
)
def test_there_is_a_program_for_each_multiprocessor(rows, fewest):
    blocks = blocks_to_try(tile(rows), 132)
    assert blocks[0] == fewest
    assert all(0.9 * 132 <= rows / block <= MOST_PARTS for block in blocks)
    assert blocks == sorted(blocks)


def test_blocks_with_steps_of_their_own_are_those_whose_steps_would_be_larger():
    """Of wide rows, Inductor's runtime computes two at a time in a block of 64."""
    one = in_short_steps(tile(8192))
    assert (one.own_step, one.step(64), tile(8192).step(64)) == (1, 1, 2)
    assert blocks_to_try(one, 132) == [64] and blocks_to_try(tile(8192), 132) == [8, 16, 32, 64]
    with pytest.raises(Unsupported, match="computed at a time"):
        blocks_to_try(in_short_steps(tile(2048)), 132)


def test_a_block_with_steps_of_its_own_is_tried_although_larger_ones_would_spill(monkeypatch):
    """Two rows of 4096 at a time need 320 registers of a thread, one 160."""
    monkeypatch.setattr(column_costs, "_work", lambda kernels, tile: Work(8192 * 4096 * 10, 0, 0, 10.0, 0))
    usual, own = tile(8192), in_short_steps(tile(8192))
    assert 64 not in fastest_first(usual, blocks_to_try(usual, 132), 132)
    assert fastest_first(own, blocks_to_try(own, 132), 132) == [64]


def test_too_few_rows_are_refused():
    with pytest.raises(Unsupported, match="too few"):
        blocks_to_try(tile(256), 132)


def test_each_sum_begins_where_memory_is_aligned():
    """Check that each sum begins where memory is aligned: 2047 blocks of one column would end within 16 bytes."""
    assert blocks_to_try(tile(2047 * 16, 1), 132)
    with pytest.raises(Unsupported):
        blocks_to_try(tile(2047 * 16 - 1, 1, 2), 2047 * 4)
    assert all(-(-8190 // block) * 6 % 4 == 0 for block in blocks_to_try(tile(8190, 6, 2), 132))


def test_each_sum_begins_where_memory_is_aligned_for_any_number_of_rows(monkeypatch):
    rows = sympy.Symbol("s0", integer=True, positive=True)
    monkeypatch.setattr(column_costs.inductor, "size_hint", lambda size: 8192)
    assert blocks_to_try(tile(rows, 8, 2), 132) == blocks_to_try(tile(8192, 8, 2), 132)
    assert blocks_to_try(tile(rows, 6), 132)
    with pytest.raises(Unsupported, match="multiple of 16 bytes"):
        blocks_to_try(tile(rows, 6, 2), 132)


@pytest.mark.parametrize(
    ("group", "columns", "blocks"),
    [
        (256, 1152, [32, 64, 128, 256]),
        (16, 512, [8, 4, 16]),
        (10, 640, [10]),
        (10, 512, []),
        (37, 1152, [32, 37]),
        (160, 512, [32]),
        (192, 1152, [32, 64]),
        (200, 200, [40, 20, 8, 4, 100, 32, 64, 128]),
    ],
)
def test_a_block_may_be_a_group(group, columns, blocks):
    """Check that a block may be a group, if it is a multiple of the rows computed at a time, a power of two.

    Of narrow rows, four are computed at a time, which 10 are no multiple of; of blocks of 160 and 192, five and six.
    Triton refused kernels of these: "arange's range must be a power of 2".
    """
    kernel = SimpleNamespace(get_name=lambda: "op0")
    one = Tile(group * 512, columns, [kernel], [SimpleNamespace(rows=group * 512, groups=512)], [])
    known = [32, 64, 128, 256]
    assert column_costs._inside_groups(known, one) == blocks


def test_partial_sums_take_four_bytes_for_each_block_and_column():
    assert parts_bytes(tile(2050, 4096, 3), 16) == 129 * 4096 * 4 * 3


def fastest(monkeypatch, one, work):
    """Return the block that comes first for kernels with so much to do, of a GPU of 132 multiprocessors."""
    monkeypatch.setattr(column_costs, "_work", lambda kernels, tile: work)
    return fastest_first(one, blocks_to_try(one, 132), 132)[0]


@pytest.mark.parametrize(("columns", "sums", "best"), [(1024, 1, 8), (1024, 3, 8), (4096, 1, 16), (4096, 3, 16)])
def test_few_programs_have_short_blocks_unless_what_they_leave_takes_longer(monkeypatch, columns, sums, best):
    """Check that few programs have short blocks unless their partial sums take longer.

    Of 2048 rows, 128 programs of 16 go through their rows one by one; 256 leave twice as many partial sums.
    """
    work = Work(2048 * columns * 6, 0, 0, 4.5 + 1.5 * sums, 0)
    assert fastest(monkeypatch, tile(2048, columns, sums), work) == best


@pytest.mark.parametrize(("bandwidth", "counted"), [(4.91e12, 775), (2.04e12, 1000), (0, 1000)])
def test_bytes_count_by_the_time_that_the_memory_takes(monkeypatch, bandwidth, counted):
    """Check 1000 bytes of an H200, of an A100, and of a GPU of which torch does not say how fast it is."""
    monkeypatch.setattr(column_costs.inductor, "memory_bandwidth", lambda device: bandwidth)
    assert column_costs._in_time(1000, tile(8192).kernels[0]) == counted


@pytest.mark.parametrize(
    ("parts", "columns", "sums", "measured"),
    [(784, 192, 1, 1.8), (784, 192, 3, 4.7), (784, 1536, 1, 2.4), (784, 1536, 3, 6.9)],
)
def test_partial_sums_are_added_up_in_about_the_measured_time(parts, columns, sums, measured):
    """Check us of an H200 against what kernels of so many sums are said to take, by an H100's 3.35 MB a us."""
    told = column_costs._cost_of_adding(tile(parts * 16, columns, sums), 16) / 3.35e6
    assert told == pytest.approx(measured, rel=0.3)


def test_kernels_of_torch_2_11_wait_for_each_row(monkeypatch):
    """Check that rows which Inductor's own kernels do not load ahead cost three times as much as those that are."""
    one, work = tile(1 << 18), Work(0, 0, 0, 1.0, 0)
    ahead, alone = (column_costs._cost_in_blocks(one, work, 132, 128, how) for how in (True, False))
    first = column_costs.BYTES_OF_FIRST_ROWS
    assert alone - first == pytest.approx(3 * (ahead - first))


def test_programs_without_registers_begin_when_others_have_ended(monkeypatch):
    """Check that programs beyond the registers cost a second round.

    Of 256 programs of rows of 2560 and 8 or 9 registers an element, 132 run at a time; of 128, all (Gemma 3).
    """
    one, few, many = tile(2048, 2560), Work(2048 * 2560 * 10, 0, 0, 4.0, 0), Work(2048 * 2560 * 10, 0, 0, 8.5, 0)
    costs = [column_costs._cost_in_blocks(one, work, 132, 8) for work in (few, many)]
    assert costs[1] - costs[0] == 8 * column_costs.BYTES_OF_A_ROW / 2
    assert fastest(monkeypatch, one, many) == 16


def test_rows_that_do_not_fit_in_registers_are_not_computed_together(monkeypatch):
    """Check that rows that do not fit in registers are not computed together.

    Blocks of 64 rows compute two at a time: 384 registers for a thread, of 255 (a chunk of 8192 x 4096).
    """
    one = tile(8192, 4096)
    assert fastest(monkeypatch, one, Work(1, 0, 0, 12.0, 0)) < 64
    with pytest.raises(Unsupported, match="registers spill"):
        fastest_first(one, [64], 132)


@pytest.mark.parametrize(
    ("rows", "columns", "blocks", "found"),
    [
        (294912, 256, [256, 512, 1024, 2048], [1024, 2048]),  # 2.2 and 1.1 warps for each multiprocessor
        (401408, 256, [512], []),  # 5.9
        (175360, 768, [512, 1024], []),  # its four warps are the most that the runtime tries
    ],
)
def test_few_programs_have_the_warps_that_inductors_runtime_tries(monkeypatch, rows, columns, blocks, found):
    """Check that few programs of a warp may have four: 16 rows of 256 are 768 registers of a thread, and 192 then."""
    one = tile(rows, columns)
    monkeypatch.setattr(column_costs, "_work", lambda kernels, tile: Work(1, 0, 0, 6.0, 0))
    if not found:
        with pytest.raises(Unsupported, match="registers spill"):
            fastest_first(one, blocks, 132)
    else:
        assert sorted(fastest_first(one, blocks, 132)) == found


def test_blocks_with_registers_for_few_programs_come_last(monkeypatch):
    """Check that blocks with registers for few programs come last, for cases with no room for more partial sums.

    Of rows of 128, eight at a time take 208 registers (GLA).
    """
    one = tile(262144, 128)
    monkeypatch.setattr(column_costs, "_work", lambda kernels, tile: Work(1, 0, 0, 6.5, 0))
    assert fastest_first(one, [128, 256, 512], 132) == [128, 256], "512 rows are 16 at a time, and spill"


def test_sines_take_as_many_warps_as_there_are_registers_for():
    """Check that sines cost more with registers for one program, of 8 warps, than for two (OLMo 2).

    One executes a third of what a multiprocessor could, in 92 us.
    """
    one, sines = tile(2048, 4096), 200e6
    costs = [column_costs._cost_in_blocks(one, Work(0, sines, sines, each, 0), 132, 8) for each in (9.0, 4.0)]
    executed = [cost - in_turn for cost, in_turn in zip(costs, (16, 8), strict=True) for in_turn in [_waits(in_turn)]]
    assert executed[0] == pytest.approx(3 * sines / 7.1) and executed[1] < 0.6 * executed[0]


def test_scattered_accesses_take_their_time_beside_memory():
    """Check that scattered accesses add their time: a moving mean along the rows took 121 us, more than its bytes."""
    one = tile(21504, 512)
    alone, scattered = (column_costs._cost_in_blocks(one, Work(1 << 28, 0, 0, 4.0, n), 132, 64) for n in (0, 71e6))
    assert scattered - alone == pytest.approx(71e6 / 7.1)


def test_few_warps_do_not_execute_all_that_a_multiprocessor_could():
    """Check that few warps cost more: rows of 192 are one warp each (Swin, ConvNeXt).

    Twelve programs are three for each scheduler; of six, two schedulers have one and two have two. Three do not keep
    the multiprocessor busy, and take as long as one.
    """
    one, work = tile(50176, 192), Work(1, 70e6, 0, 4.0, 0)
    steps = {32: 8 * 3 / 2, 64: 16, 128: 32, 512: 32}
    executed = [column_costs._cost_in_blocks(one, work, 132, block) - _steps(steps[block]) for block in steps]
    assert [each * 7.1 / 70e6 for each in executed] == pytest.approx([1.01, 8 / 5.94, 5 / 2.97, 5 / 0.74], rel=0.02)


def test_multiprocessor_with_the_most_programs_ends_last():
    """Check that the multiprocessor with the most programs counts: of 197 programs, some have two."""
    one, work = tile(12608, 768), Work(1, 70e6, 0, 1.0, 0)
    executed = column_costs._cost_in_blocks(one, work, 132, 64) - _steps(32)
    assert executed * 7.1 / 70e6 == pytest.approx(2 * 132 / 197)


def test_rows_of_a_step_share_what_is_around_their_elements(monkeypatch):
    """Check that rows of a step share what is around their elements.

    Of 512 rows, 16 are computed at a time, of 128 four (ConvNeXt's strips, which are across memory).
    """
    monkeypatch.setattr(column_costs.inductor, "bytes_beside", lambda kernel, rows: 10**9 // rows)
    assert fastest(monkeypatch, tile(200704, 96), Work(1, 0, 0, 0.1, 0)) == 512


def _steps(steps):
    return steps * column_costs.BYTES_OF_A_ROW / 3 + column_costs.BYTES_OF_FIRST_ROWS


def _waits(rows):
    return rows * column_costs.BYTES_OF_A_ROW / 2 + column_costs.BYTES_OF_FIRST_ROWS


def test_a_kernel_costs_no_more_than_with_the_other_loops_that_it_may_get(monkeypatch):
    """Check that a kernel costs no more than with the other loops that it may get, as over the halves of a row."""
    one = tile(8192)
    monkeypatch.setattr(column_costs.mixed, "is_mixed", lambda kernel: False)
    monkeypatch.setattr(column_costs, "bytes_in_cache", lambda kernel, others: 0)
    monkeypatch.setattr(column_costs, "_cost_of_parts", lambda tile, kernel: 0)
    monkeypatch.setattr(column_costs, "cost_of", lambda kernel, in_cache: 10)
    (kernel,) = one.kernels
    found = [column_costs._cost_before(replace(one, alone=alone), kernel) for alone in ((), ((kernel, 6),))]
    assert found == [10, 6]


@pytest.mark.parametrize(("columns", "steps", "waits"), [(256, 72, 72), (64, 128, 8), (16, 2, 2)])
def test_few_steps_of_a_sum_of_narrow_rows_wait_for_memory(monkeypatch, columns, steps, waits):
    """Check that sums of 2048 rows of 64 take as long as their bytes, of 1152 rows of 256 half as long again."""
    one = tile(8192, columns)
    monkeypatch.setattr(column_costs.inductor, "loop_nodes", lambda kernel: [one.sums[0].part])
    monkeypatch.setattr(column_costs, "_steps_of_part", lambda one: steps)
    monkeypatch.setattr(column_costs, "BYTES_OF_A_STEP", 1)
    assert column_costs._cost_of_parts(one, one.kernels[0]) == waits


def test_long_steps_are_for_blocks_of_many_of_them():
    """Check that few rows have the steps that Inductor's runtime chooses: 64 rows of 16 are one of a block of 64."""
    many, few = (replace(tile(rows, 16), own_step=rows_of_long_step(16)) for rows in (1 << 20, 16384))
    assert many.step(1024) == 64 and blocks_to_try(many, 132) == [1024, 2048, 4096, 8192]
    with pytest.raises(Unsupported, match="more than a few times"):
        blocks_to_try(few, 132)
