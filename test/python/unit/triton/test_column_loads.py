"""Test what the loop over a block's rows loads, and when."""

from __future__ import annotations

import pytest

from bridge.lowering.triton.column_loads import (
    Loaded,
    all_stay,
    bytes_of_step,
    lanes_differ,
    loads_parameters_once,
    mostly_rows,
    programs_at_once,
    rows_of_long_step,
    rows_of_step,
    staged_bytes,
    too_few_loads,
    warps_of_row,
    warps_of_step,
)


def test_no_program_waits_for_the_shared_memory_of_another():
    shared = 233472
    rows, parameters = [Loaded(size, True, True) for size in (2, 2, 1)], [Loaded(4, False, True)] * 4
    assert staged_bytes(1280, rows + parameters) == 86016  # as Triton has it
    assert all_stay(264 / 132, 86016, shared) and not all_stay(265 / 132, 86016, shared)
    assert not all_stay(1, 2 * shared, shared) and not all_stay(1, 1, 0)


def test_rows_ahead_take_nothing_that_registers_would_leave():
    """Check that rows ahead do not reduce the programs that registers allow: of 1024, 4 run at a time either way."""
    assert programs_at_once(1152, 1024, 132) == 4
    assert all_stay(4, 49152, 233472) and not all_stay(4, 65536, 233472)


def test_rows_are_not_loaded_ahead_where_many_programs_load_much():
    few, much = [Loaded(2, True, True)] * 2, [Loaded(4, True, True)] * 3
    assert too_few_loads(4, much, 1, 32) and too_few_loads(8, few, 1, 32) and not too_few_loads(6, much, 1, 32)


def test_many_short_rows_are_loaded_ahead_unless_a_cache_has_much_of_what_they_load():
    """Check the step of four rows of a BatchNorm's gradient, with what each picture has of its own (MobileNetV3)."""
    rows, parameter = [Loaded(2, True, True)] * 3, Loaded(4, False, True)
    of_picture = [Loaded(4, True, True, True), Loaded(2, True, True, True)]
    assert bytes_of_step([*rows, *of_picture, parameter], 4) == (24, 28)
    assert too_few_loads(9, [*rows, *of_picture, parameter], 4, 256)
    assert not too_few_loads(12, [*rows, *of_picture, parameter], 4, 256)
    assert too_few_loads(32, [*rows, parameter], 4, 64), "little of it is in a cache"


@pytest.mark.parametrize(("programs", "block", "few"), [(12, 64, False), (12, 128, True), (4, 64, True)])
def test_many_programs_of_few_steps_load_no_rows_ahead(programs, block, few):
    """Check rows of 92 with four parameters: they took 48 us in blocks of 64, and with rows ahead 70."""
    assert too_few_loads(programs, [Loaded(2, True, True)] * 2 + [Loaded(4, False, True)] * 4, 4, block) is few


def test_parameters_are_not_loaded_with_each_row():
    row, parameter = Loaded(2, True, True), Loaded(2, False, True)
    assert mostly_rows([row]) and mostly_rows([row, row, parameter, parameter, parameter])
    assert not mostly_rows([row, *[parameter] * 3]) and not mostly_rows([parameter])
    assert mostly_rows([row, *[parameter] * 4], 4), "four rows at a time load them once"


def test_what_rows_repeat_is_loaded_with_each_of_them():
    repeated = Loaded(4, True, True, True)
    assert mostly_rows([Loaded(2, True, True), repeated], 4)
    assert not mostly_rows([Loaded(2, True, True), repeated, repeated], 4)


@pytest.mark.parametrize(("columns", "step", "warps"), [(16, 64, 2), (20, 32, 2), (8, 128, 2), (33, None, 1)])
def test_a_program_of_very_short_rows_computes_many_at_a_time(columns, step, warps):
    assert rows_of_long_step(columns) == step
    assert warps_of_step(columns, step or 16) == warps
    assert warps_of_step(columns, 16) == warps_of_row(columns), "as Inductor's runtime has it"


def test_an_element_that_all_lanes_load_is_not_copied_ahead():
    assert lanes_differ([Loaded(2, True, True), Loaded(2, False, True)])
    assert not lanes_differ([Loaded(2, True, True), Loaded(4, True, False)])


@pytest.mark.parametrize(("columns", "block", "rows", "warps"), [(192, 32, 4, 1), (1024, 16, 1, 4), (4096, 128, 4, 8)])
def test_a_program_is_as_inductors_runtime_has_it(columns, block, rows, warps):
    assert (rows_of_step(columns, block), warps_of_row(columns)) == (rows, warps)


@pytest.mark.parametrize(
    ("of_rows", "parameters", "columns", "block", "once"),
    [
        (4, 8, 1024, 64, True),  # two rows at a time, 64 registers
        (4, 9, 1024, 64, False),  # 72 registers
        (4, 3, 1024, 16, True),
        (4, 1, 1024, 16, False),  # it is loaded with each row
        (4, 6, 512, 128, False),  # four rows at a time need them once
    ],
)
def test_parameters_are_loaded_once_where_a_step_has_more_of_them_than_of_rows(
    of_rows, parameters, columns, block, once
):
    loads = [Loaded(of_rows, True, True), *[Loaded(4, False, True)] * parameters]
    assert loads_parameters_once(loads, columns, rows_of_step(columns, block)) is once
