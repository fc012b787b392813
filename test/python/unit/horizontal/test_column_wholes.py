"""Test which kernels add up all elements of a tile, and what a part for each row costs what adds them up."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest
import sympy
import torch
from schedules import look_at_gpu_schedule

from bridge import inductor
from bridge.horizontal.column_wholes import Wholes, find_with_wholes, wholes_of


def scaled(x, g, scale):
    """Store a product in one kernel with the sum of all elements."""
    return g * scale, (g * x).sum(), (g * x).sum(0)


@pytest.mark.parametrize(("columns", "pieces"), [(4096, [8192]), (1024, [32768]), (4095, [])])
def test_a_sum_of_all_elements_has_a_part_for_each_row(columns, pieces):
    """Check that a sum of all elements has a part for each row.

    Inductor has one loop over all of them, which ends in rows of any tile with as many elements.
    """
    seen: list = []

    def look(schedule):
        found = wholes_of(schedule, 8192 * 4096 // columns, columns)
        seen.append([one.parts for _, own in found for one in own])

    look_at_gpu_schedule(scaled, [torch.empty(8192, 4096), torch.empty(8192, 4096), torch.empty(1)], look)
    assert seen == [pieces]


def test_loops_are_those_of_the_tile_while_it_is_tried():
    """Check that nodes have the loops of the tile while it is tried, and Inductor's afterwards.

    With the loops of Inductor's parts, no value of theirs was seen to be another node's, too.
    """
    seen: list = []

    def look(schedule):
        def find(changed, undo):
            nodes = [node for kernel in changed for node in inductor.loop_nodes(kernel)]
            seen.extend(tuple(map(int, inductor.node_body(n).sizes[0])) for n in nodes if n.get_name() == "op0")
            return changed, SimpleNamespace(kernels=[])

        with contextlib.ExitStack() as undo:
            assert find_with_wholes(schedule, undo, (8192, 4096), schedule, find) is None
        (node,) = [n for kernel in schedule for n in inductor.loop_nodes(kernel) if n.get_name() == "op0"]
        seen.append(tuple(map(int, inductor.node_body(node).sizes[0])))

    look_at_gpu_schedule(scaled, [torch.empty(8192, 4096), torch.empty(8192, 4096), torch.empty(1)], look)
    assert seen[0] == (8192, 4096) != seen[1]


def test_rows_of_a_symbol_have_no_parts():
    with contextlib.ExitStack() as undo:
        assert find_with_wholes([], undo, (sympy.Symbol("s"), 16), [], None) is None


def test_more_parts_take_what_adds_them_up_longer():
    sums = tuple(SimpleNamespace(parts=parts) for parts in (2048, 8192))
    assert Wholes(None, sums, None).steps == 3
