"""Test the order of a kernel's rows where memory is far apart along them."""

from __future__ import annotations

import itertools

import pytest
import sympy

from bridge.inductor import RowAccess
from bridge.lowering.lift.band import LiftedBand, LiftedNode
from bridge.lowering.lift.loop_order import LoopOrder, best_order, in_memory_order

#: Two images of 8 x 8 windows of 7 x 7, of 96 channels in planes: the loops go over images, windows and their pixels.
WINDOWS = (2, 8, 8, 7, 7)
PLANES = RowAccess((96 * 3136, 392, 7, 56, 1), 1000)


def test_rows_get_the_order_of_memory():
    """Check that rows get the order of memory: images, and then the pixels of each from line to line."""
    assert best_order(WINDOWS, [PLANES]) == LoopOrder(((0,), (1, 3, 2, 4)), WINDOWS)


@pytest.mark.parametrize(
    ("sizes", "accesses"),
    [
        (WINDOWS, []),
        ((2, 56, 56), [RowAccess((96 * 3136, 56, 1), 1000)]),  # as it is
        ((2, 7, 1, 7), [RowAccess((96 * 49, 7, 49, 1), 1000)]),  # Triton sees no neighbours in lines of 49 in any order
        ((4, 8), [RowAccess((0, 64), 1000)]),  # nothing has a neighbour
    ],
)
def test_no_order_is_better(sizes, accesses):
    assert best_order(sizes, accesses) is None


@pytest.mark.parametrize(("moved", "loops"), [(999, ((1,), (0,))), (1000, None), (1001, None)])
def test_most_bytes_decide(moved, loops):
    """Check that the access with the most bytes decides; the present order is that of one of two accesses."""
    found = best_order((4, 8), [RowAccess((8, 1), moved), RowAccess((1, 4), 1000)])
    assert (found.loops if found else None) == (((1, 0),) if loops else None)


def test_each_iteration_is_run_once():
    order = LoopOrder(((2,), (0, 1)), (2, 3, 4))
    assert order.extents == [4, 6]
    seen = {tuple(order.before([sympy.Integer(i), sympy.Integer(j)])) for i in range(4) for j in range(6)}
    assert seen == set(itertools.product(range(2), range(3), range(4)))
    assert order.before([sympy.Integer(1), sympy.Integer(5)]) == [1, 2, 1]


def band(*nodes):
    return LiftedBand(list(nodes), [0])


def node(sizes, reduced=(), body=None):
    integers = [sympy.sympify(size) for size in sizes]
    return LiftedNode("op", integers, [sympy.Integer(size) for size in reduced], body)


def test_all_nodes_get_the_order(monkeypatch):
    ran = []
    monkeypatch.setattr("bridge.inductor.accesses_far_apart", lambda nodes, rows: [RowAccess((1, 4), 1000)])
    total = node([4, 8], [96], lambda indices, reduced: ran.append((*indices, *reduced)))
    store = node([4, 8, 96], body=lambda indices, reduced: ran.append((*indices, *reduced)))
    found = in_memory_order(band(total, store), [])
    assert [(one.iter_sizes, one.reduce_sizes) for one in found.nodes] == [([32], [96]), ([32, 96], [])]
    found.nodes[0].body([sympy.Integer(13)], [sympy.Integer(5)])
    found.nodes[1].body([sympy.Integer(13), sympy.Integer(5)], [])
    assert ran == [(1, 3, 5)] * 2


@pytest.mark.parametrize(
    "nodes",
    [
        [node([4, 8, 96])],  # no row is reduced
        [node([32], [96])],  # one loop has one order
        [node([4, 8], [96]), node([8, 4, 96])],  # a node has other loops
        [node([4, 8], [16])],  # a row that stands alone is too short
        [node([4, sympy.Symbol("s0")], [96])],  # of sizes that are not known it is not known what is near
    ],
)
def test_the_loops_over_rows_have_to_be_known(monkeypatch, nodes):
    monkeypatch.setattr("bridge.inductor.accesses_far_apart", lambda nodes, rows: [RowAccess((1, 4)[:rows], 1000)])
    assert in_memory_order(band(*nodes), []) is None
