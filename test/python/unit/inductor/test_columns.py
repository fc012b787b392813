"""Test sums of columns, in two stages and as nodes of a kernel of rows."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest
import sympy
import torch
from functions import norm
from schedules import look_at_column_part
from torch._inductor.sizevars import SizeVarAllocator
from torch._inductor.virtualized import V
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from bridge import inductor
from bridge.inductor import columns
from bridge.reasons import Reason, Unsupported

ROWS, COLUMNS = 2048, 4096


def sums(x, g):
    return norm(x), (x * g).sum(0)


def largest(x, g):
    return norm(x), (x * g).amax(0)


def smallest(x, g):
    return norm(x), (x * g).to(torch.bfloat16).amin(0)


def products(x, g):
    return norm(x), (x * g).prod(0)


def wide(x, g):
    return norm(x), (x * g).sum(0, dtype=torch.float64)


def whole_numbers(x, g):
    return norm(x), (x * g).int().amax(0)


def look(function, check):
    """Call `check` with the first stage of the function's only sum of columns."""
    look_at_column_part(function, [torch.randn(ROWS, COLUMNS)] * 2, lambda part, others: check(part))


def test_a_sum_of_columns_in_two_stages():
    def check(part):
        one = columns.column_sum(part)
        assert (one.rows, one.columns) == (ROWS, COLUMNS) == columns.rows_and_columns(part)
        assert 1 < one.parts < ROWS and ROWS % one.parts == 0
        assert [int(size) for size in one.tile.sizes[0]] == [ROWS, COLUMNS] and not one.tile.sizes[1]
        assert one.tile.has_partial_accumulate
        assert inductor.buffers_read(one.total) == {one.buffer}

    look(sums, check)


def test_the_stages_have_their_loops_again_after_undo():
    def check(part):
        one = columns.column_sum(part)
        nodes, read = (one.part, one.total), inductor.buffers_read(one.part)
        before = [(inductor.node_body(node), inductor.node_sizes(node)) for node in nodes], part.node.layout
        with contextlib.ExitStack() as undo:
            columns.add_up_in_tile(one, undo)
            columns.add_up_blocks(one, 128, undo)
            assert not one.part.is_reduction() and one.part.node.layout.size[-1] == 128
            assert inductor.node_sizes(one.total) == ([COLUMNS], [128])
            assert inductor.buffers_read(one.part) == read
        assert before == ([(inductor.node_body(node), inductor.node_sizes(node)) for node in nodes], part.node.layout)
        assert one.part.is_reduction()

    look(sums, check)


@pytest.mark.skipif("max" not in columns.KINDS, reason="Inductor's kernel of rows and columns adds up alone there")
@pytest.mark.parametrize("function", [largest, smallest])
def test_extremes_of_columns_are_found_like_sums(function):
    def check(part):
        one = columns.column_sum(part)
        assert (one.rows, one.columns) == (ROWS, COLUMNS) and one.tile.has_partial_accumulate

    look(function, check)


@pytest.mark.parametrize("function", [products, wide, whole_numbers] + [largest] * ("max" not in columns.KINDS))
def test_only_sums_and_extremes_of_what_float32_holds(function):
    def check(part):
        with pytest.raises(Unsupported) as refused:
            columns.column_sum(part)
        assert refused.value.reason is Reason.not_liftable

    look(function, check)


def first_stage(rows, kept, sizes, strides):
    layout = SimpleNamespace(size=sizes, stride=strides)
    node = SimpleNamespace(_original_reduction_ranges=[rows], _original_ranges=kept, get_layout=lambda: layout)
    return SimpleNamespace(node=node)


def test_rows_may_be_a_symbol_of_which_there_is_one():
    """Check that the number of rows may be a symbol, unless it can be 0; columns must be a number.

    A size that no guard is about may be 0. Groups of a symbolic number have as many columns each.
    """
    rows, none = sympy.Symbol("s0", integer=True, positive=True), sympy.Symbol("u0", integer=True, nonnegative=True)
    sixteen = sympy.Integer(16)
    with V.set_graph_handler(SimpleNamespace(sizevars=SizeVarAllocator(ShapeEnv()))):
        one, four = sympy.Integer(1), sympy.Integer(4)
        assert columns.rows_and_columns(first_stage(rows, [sixteen], [sixteen, four], [one, sixteen])) == (rows, 16)
        assert columns.rows_and_columns(first_stage(none, [sixteen], [sixteen, four], [one, sixteen])) is None
        assert columns.rows_and_columns(first_stage(sixteen, [rows], [rows, four], [one, rows])) is None
        grouped = first_stage(sixteen, [rows, sixteen], [rows, sixteen, four], [4 * sixteen, one, sixteen])
        assert columns.rows_and_columns(grouped) == (16 * rows, 16)
