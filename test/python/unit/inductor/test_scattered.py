"""Test accesses of elements side by side that are apart in memory."""

from __future__ import annotations

import pytest
import sympy
import torch
from schedules import scheduled
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

from bridge.inductor.instructions import WEIGHTS, instructions
from bridge.inductor.scattered import (
    INSTRUCTIONS_OF_A_BYTE,
    LINE,
    bytes_apart,
    instructions_along_rows,
    instructions_of_access,
    places_in_tile,
    rows_are_together,
    skips_elements,
)
from bridge.inductor.schedule import loop_nodes, node_body

X, Y = sympy.symbols("x y", integer=True, nonnegative=True)


@pytest.mark.parametrize(
    ("index", "apart"),
    [
        (X + 64 * Y, 0), (Y, 0), (2 * X + 1, 0), (X + 3 * Y + 5, 0), (FloorDiv(X, 128), 0), (sympy.Integer(3), 0),
        (4 * X + 64 * Y, 8), (2 * FloorDiv(X, 2), 2), (4 * FloorDiv(X, 2) + 3, 4), (ModularIndexing(X, 1, 4), 0),
        (64 * ModularIndexing(X + Y, 1, 16), 128),
    ],
)  # fmt: skip
def test_bytes_between_neighbours_without_a_common_access(index, apart):
    assert bytes_apart(index, X, {X, Y}, 2) == apart


def test_the_cache_answers_for_a_line_at_a_time():
    assert instructions_of_access(0, 8) == 0
    assert instructions_of_access(4, 2) == 8 * INSTRUCTIONS_OF_A_BYTE
    assert instructions_of_access(1024, 8) == LINE * INSTRUCTIONS_OF_A_BYTE


def of_a_convolution(x, weight):
    """Multiply by the second of four weights of each channel."""
    return x * weight[:, 1]


def test_each_element_beside_another_waits_for_its_own_access():
    with scheduled(of_a_convolution, (64, 32), (32, 4)) as graph:
        nodes = [node for kernel in graph.scheduler.nodes for node in loop_nodes(kernel)]
        together, few, many = (instructions(nodes, beside) for beside in (0, 2, 8))
        assert few - together == pytest.approx(2 * 16 * INSTRUCTIONS_OF_A_BYTE - WEIGHTS["load"])
        assert many - together == pytest.approx(8 * 16 * INSTRUCTIONS_OF_A_BYTE - WEIGHTS["load"])
        bodies = [node_body(node) for node in nodes]
        assert instructions_along_rows(bodies, 64, 32, 8) == pytest.approx(8 * 16 * INSTRUCTIONS_OF_A_BYTE)
        assert instructions_along_rows([*bodies, *bodies], 64, 32, 8) == instructions_along_rows(bodies, 64, 32, 8)
        assert not any(rows_are_together(body, 64, 32) for body in bodies)


def transposed(x):
    return torch.exp(x).permute(1, 0).clone(memory_format=torch.contiguous_format)


def test_rows_that_are_neighbours_have_one_access():
    """Check that adjacent rows have one access: blocks of pixels, as many as a program has at a time."""
    with scheduled(transposed, (64, 32)) as graph:
        (body,) = [node_body(node) for kernel in graph.scheduler.nodes for node in loop_nodes(kernel)]
        for step in (1, 4):
            assert instructions_along_rows([body], 32, 64, 1, step) == LINE * INSTRUCTIONS_OF_A_BYTE / step
        assert rows_are_together(body, 32, 64)
    assert bytes_apart(64 * X + Y, X, {X, Y}, 2) == 0
    assert bytes_apart(64 * X + 2 * Y, X, {X, Y}, 2) == 128


def test_loops_that_end_in_the_middle_of_a_row_say_nothing():
    with scheduled(transposed, (64, 32)) as graph:
        (body,) = [node_body(node) for kernel in graph.scheduler.nodes for node in loop_nodes(kernel)]
        assert places_in_tile(body, 64, 48) == set()


@pytest.mark.parametrize(
    ("function", "skips"),
    [
        (lambda x: x[:, 1::2] + 1, True),
        (lambda x: x[:, 1:] + 1, False),
        (lambda x: x[:, :1].expand(64, 8) + 1, False),
        (lambda x: x[:, ::4] * 2, True),
    ],
)
def test_elements_side_by_side_that_are_no_neighbours(function, skips):
    with scheduled(function, (64, 32)) as graph:
        (node,) = [node for kernel in graph.scheduler.nodes for node in loop_nodes(kernel)]
        assert skips_elements(node_body(node)) == skips
