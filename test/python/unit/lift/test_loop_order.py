"""Test the order of a kernel's rows where memory is far apart along them."""

from __future__ import annotations

import itertools

import pytest
import sympy

from bridge.inductor import RowAccess
from bridge.lowering.lift.band import LiftedBand, LiftedNode
from bridge.lowering.lift.loop_order import LoopOrder, best_order, in_memory_order

#: Two images of 8 x 8 windows of 7 x 7, of 96 channels in planes: the loops go over images, windows and their pixels.
WINDOWS = tuple(map(sympy.Integer, (2, 8, 8, 7, 7)))
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
    assert best_order(sympify(sizes), accesses) is None


def sympify(sizes):
    return tuple(map(sympy.sympify, sizes))


def test_rows_of_a_symbolic_number_get_the_order_of_memory():
    """Check that heads, which are neighbours in memory, are the innermost rows where other sizes are symbols.

    Talking heads store each head's scores so: 16 heads of 256 queries of a symbolic number of images.
    """
    sizes = (sympy.Symbol("s", integer=True), *sympify((16, 256)))
    heads = RowAccess((16 * 256 * 256, 1, 16 * 256), 1000)
    assert best_order(sizes, [heads]) == LoopOrder(((0, 2), (1,)), sizes)
    found = best_order(sizes, [RowAccess((256 * 16, 1, 16), 1000)])
    assert found == LoopOrder(((0, 2, 1),), sizes)
    assert found.extents == [sizes[0] * 4096]
    where = dict(zip(sizes, (2,), strict=False))
    seen = {tuple(one.subs(where) for one in found.before([sympy.Integer(i)])) for i in range(2 * 4096)}
    assert seen == set(itertools.product(range(2), range(16), range(256)))


def test_behind_rows_of_a_symbolic_number_none_are_neighbours():
    """Check that no order is chosen for neighbours that Triton sees of a number of rows only."""
    sizes = (sympy.Integer(4), sympy.Symbol("s", integer=True))
    assert best_order(sizes, [RowAccess((1, 4), 1000)]) == LoopOrder(((1, 0),), sizes)
    assert best_order(sizes[::-1], [RowAccess((1, 8), 1000)]) is None


@pytest.mark.parametrize(("moved", "loops"), [(999, ((1,), (0,))), (1000, None), (1001, None)])
def test_most_bytes_decide(moved, loops):
    """Check that the access with the most bytes decides; the present order is that of one of two accesses."""
    found = best_order(sympify((4, 8)), [RowAccess((8, 1), moved), RowAccess((1, 4), 1000)])
    assert (found.loops if found else None) == (((1, 0),) if loops else None)


def test_each_iteration_is_run_once():
    order = LoopOrder(((2,), (0, 1)), sympify((2, 3, 4)))
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
        [node([sympy.Symbol("s0", integer=True), 4], [96])],  # Triton sees no neighbours behind a symbolic number
    ],
)
def test_the_loops_over_rows_have_to_be_known(monkeypatch, nodes):
    monkeypatch.setattr("bridge.inductor.accesses_far_apart", lambda nodes, rows: [RowAccess((1, 4)[:rows], 1000)])
    assert in_memory_order(band(*nodes), []) is None
