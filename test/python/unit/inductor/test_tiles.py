"""Test which element of a tile, by row and column, a loop node accesses."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import sympy
import torch
from functions import norm
from schedules import look_at_gpu_schedule
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

from bridge import inductor
from bridge.inductor import columns, tiles
from bridge.inductor.tiles import COLUMN, ROW

A, B, C = sympy.symbols("a b c", integer=True, nonnegative=True)


def digits(sizes, rows=8, columns=12):
    variables = [A, B, C][: len(sizes)]
    body = SimpleNamespace(iter_vars=variables, reduce_vars=[], sizes=([sympy.sympify(s) for s in sizes], []))
    found = tiles.loop_digits(body, rows, columns)
    return None if found is None else [found[variable] for variable in variables]


@pytest.mark.parametrize("sizes", [[8, 12], [96], [4, 2, 12], [8, 3, 4], [2, 48], [4, 6, 4]])
def test_loops_are_digits_of_an_elements_number(sizes):
    """Check that loops are digits of an element's number: together they are row and column, as one number."""
    found = digits(sizes)
    for row in range(8):
        for column in range(12):
            number = 0
            for digit, size in zip(found, sizes, strict=True):
                value = int(digit.subs({ROW: row, COLUMN: column}))
                assert 0 <= value < size
                number = number * size + value
            assert number == 12 * row + column


def test_a_loop_that_ends_within_a_row_has_no_digit():
    assert digits([19, 5], 5, 19) is None


def test_loops_over_rows_alone():
    assert digits([8]) == [ROW] and digits([4, 2]) == [
        FloorDiv(ROW, 2),
        ModularIndexing(ROW, 1, 2),
    ]


S = sympy.Symbol("s0", integer=True, positive=True)


@pytest.mark.parametrize("sizes", [[S, 12], [12 * S], [S, 3, 4], [4 * S, 2, 6]])
def test_the_outermost_loop_may_have_as_many_iterations_as_a_symbol(sizes):
    """Check that the outermost loop may have a symbolic number of iterations, as long as the row is a number."""
    from torch._inductor.sizevars import SizeVarAllocator
    from torch._inductor.virtualized import V
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    rows = 4 * S if sizes[0] == 4 * S else S
    with V.set_graph_handler(SimpleNamespace(sizevars=SizeVarAllocator(ShapeEnv()))):
        found = digits(sizes, rows)
    for row in range(8):
        for column in range(12):
            number = 0
            for digit, size in zip(found, sizes, strict=True):
                number = number * size + digit.subs({ROW: row, COLUMN: column})
            assert number == 12 * row + column


def test_a_loop_over_rows_and_columns_has_both():
    assert tiles._digit(4, 24, 12) == FloorDiv(COLUMN, 4) + 3 * ModularIndexing(ROW, 1, 8)


def of_result(x, g):
    h = torch.softmax(norm(x), -1)
    return h, (h * g).sum(0), (torch.roll(h, 1, 0) * g).sum(0), (h.flip(1) * g).sum(0)


def test_a_reader_of_other_elements_does_not_agree():
    """Check that a reader of other elements does not agree, in a square tile, which has as many rows as columns."""
    size = 2048
    seen: list = []

    def look(schedule):
        nodes = [node for kernel in schedule for node in inductor.loop_nodes(kernel)]
        parts = [columns.column_sum(node) for node in nodes if columns.is_column_part(node)]
        made = parts[0].part.scheduler.name_to_buf
        (name,) = set.intersection(*(inductor.buffers_read(one.part) for one in parts)) & made.keys()
        writer = made[name].defining_op
        seen.extend(tiles.agree(writer, one.tile, name, size, size) for one in parts)

    look_at_gpu_schedule(of_result, [torch.randn(size, size)] * 2, look)
    assert sorted(seen) == [False, False, True]


def of_sum(x, g):
    total = (x * g).sum(1)
    return total.tanh().sum(), total.flip(0), total.flip(1), total.t(), total * 2


def test_a_reader_of_a_sums_other_elements_does_not_agree():
    """Check that readers of other elements of a sum do not agree: reversed, transposed, or summed to one."""
    seen: list = []

    def look(schedule):
        nodes = [node for kernel in schedule for node in inductor.loop_nodes(kernel)]
        readers = {name: [n for n in nodes if name in inductor.buffers_read(n)] for name in ("buf0", "buf1")}
        name = max(readers, key=lambda name: len(readers[name]))
        total = nodes[0].scheduler.name_to_buf[name].defining_op
        seen.extend(tiles.agree_on_elements(total, reader, name) for reader in readers[name])

    look_at_gpu_schedule(of_sum, [torch.randn(64, 512, 64)] * 2, look)
    assert sorted(seen) == [False, False, False, True]
