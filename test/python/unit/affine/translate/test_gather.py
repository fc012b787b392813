"""Test loads at places that depend on data: translated and lifted back, or refused by name."""

from __future__ import annotations

import pytest
import sympy
import torch
from torch.utils._sympy.functions import ModularIndexing
from translated import COLUMNS, DTYPES, FLOATS, ROWS, check, pointwise, reason_of, stored_values, translate

from bridge.affine.translate.access import expand
from bridge.affine.translate.gather import (
    Position,
    check_only_read,
    depends_on_data,
    make_gather,
    position_symbol,
)
from bridge.affine.translate.trace import iteration_variable
from bridge.reasons import Reason, Unsupported

pytestmark = pytest.mark.usefixtures("graph")

first, second, row = position_symbol(0), position_symbol(1), iteration_variable(0)
stride = sympy.Symbol("s0", integer=True, positive=True)


def buffers(table=torch.float32, ids=torch.int64):
    return {"out": table, "ids": ids, "table": table}


def gathered(place, check_size=True, wraps=True):
    """Return a body that loads from a table at `place(position, indices)`; a buffer of integers has the position."""

    def compute(ops, _, indices):
        value = ops.load("ids", indices[0] * COLUMNS + indices[1])
        position = ops.indirect_indexing(value, ROWS, check_size, wraps)
        return ops.load("table", place(position, indices))

    return pointwise(compute)


def table_row(position, indices):
    return position * COLUMNS + indices[1]


@pytest.mark.parametrize("check_size", [False, True])
@pytest.mark.parametrize("wraps", [False, True])
def test_flags_come_back(check_size, wraps):
    body = gathered(table_row, check_size, wraps)
    check(body, buffers())
    ((_, (value, _)),) = [store[3][:1] + [store[3][0]] for store in stored_values(translated(body))]
    assert value[0] == "bridge.gather"
    assert f"checks = array<i1: {str(check_size).lower()}>" in value[1]
    assert f"wraps = array<i1: {str(wraps).lower()}>" in value[1]


def translated(body):
    return translate(body, buffers(), ((ROWS, COLUMNS), ()), rounds=False)


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_of_every_dtype(dtype):
    check(gathered(table_row), buffers(dtype))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_positions_are_integers(dtype):
    check(gathered(table_row), buffers(ids=dtype))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bool, *FLOATS])
def test_other_positions_are_refused(dtype):
    assert reason_of(gathered(table_row), buffers(ids=dtype)) == Reason.indirect_index


def test_two_positions():
    def compute(ops, _, indices):
        at = indices[0] * COLUMNS + indices[1]
        down = ops.indirect_indexing(ops.load("ids", at), ROWS, True, True)
        along = ops.indirect_indexing(ops.load("ids", at), COLUMNS, False, True)
        return ops.load("table", down * COLUMNS + along)

    check(pointwise(compute), buffers())


def test_a_gather_stays_under_its_mask():
    def compute(ops, _, indices):
        inside = ops.lt(ops.index_expr(indices[0], torch.int64), ops.constant(8, torch.int64))

        def block():
            value = ops.load("ids", indices[0] * COLUMNS + indices[1])
            return ops.load("table", table_row(ops.indirect_indexing(value, ROWS, True, True), indices))

        return ops.masked(inside, block, 0.0)

    body = pointwise(compute)
    check(body, buffers())
    ((_, _, _, operands, _),) = stored_values(translated(body))
    assert operands[0][0][0] == "affine.if"


@pytest.mark.parametrize(
    "place",
    [
        lambda position, _: ModularIndexing(position, 1, 4),
        lambda position, _: position * position,
        lambda position, indices: position * indices[1],
    ],
)
def test_what_is_not_linear_in_a_position_is_refused(place):
    assert reason_of(gathered(place), buffers()) == Reason.indirect_index


@pytest.mark.parametrize("use", ["index_expr", "check_bounds", "store"])
def test_only_loads_depend_on_data(use):
    def compute(ops, _, indices):
        at = indices[0] * COLUMNS + indices[1]
        position = ops.indirect_indexing(ops.load("ids", at), ROWS, True, True)
        if use == "index_expr":
            return ops.index_expr(position, torch.int64)
        if use == "check_bounds":
            ops.check_bounds(position, ROWS, True, True)
        else:
            ops.store("out", table_row(position, indices), ops.load("table", at))
        return ops.load("table", at)

    assert reason_of(pointwise(compute), buffers()) == Reason.indirect_index


def test_an_index_is_split_into_base_and_strides():
    positions = {symbol: Position(None, ROWS, True, True) for symbol in (first, second)}
    gather = make_gather("table", expand(stride * (first + row) + 3 * second - second + 5), positions)
    assert gather.base == stride * row + 5
    assert gather.positions == [(positions[first], stride), (positions[second], 2)]


def test_which_indices_depend_on_data():
    assert depends_on_data(row, first + row)
    assert not depends_on_data(row + stride, 3)


def test_what_the_group_writes_is_not_gathered_from():
    check_only_read("op1", {"table"}, {"out"})
    with pytest.raises(Unsupported, match="op1: table is written beside it") as refused:
        check_only_read("op1", {"table", "other"}, {"out", "table"})
    assert refused.value.reason is Reason.indirect_index
