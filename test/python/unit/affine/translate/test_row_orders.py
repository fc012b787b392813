"""Test the order in which nodes of one kernel go over its rows."""

from __future__ import annotations

import sympy

from bridge.affine.translate.loops import NodeLoops
from bridge.affine.translate.row_orders import loops_in_one_order

S, T = sympy.symbols("s t", integer=True, positive=True)


def node(*extents, stored="y", reads="x", kernel=0, reduction=(), cuts=()):
    """Return a node's loops."""
    iteration, reduced = ([sympy.sympify(extent) for extent in part] for part in (extents, reduction))
    strides = [(name, [sympy.Integer(0)] * (len(iteration) + len(reduced))) for name in (reads, stored)]
    return NodeLoops(iteration, reduced, kernel, list(cuts), strides, stored={stored})


def factors(*loops):
    return [[sympy.sympify(extent) for extent in part] for part in loops]


def of(nodes, choice):
    found = loops_in_one_order(nodes, choice)
    return None if found is None else [tuple(own) for own in found]


QUERIES = node(S, 32, 128, stored="q")


def test_copies_of_keys_go_over_tokens_first():
    """Check that copies of keys go over tokens first; Inductor has heads, copies and tokens in one loop.

    A remainder by 64 cuts no row.
    """
    keys = node(32 * S, 128, cuts=[{S, 4 * S}, {64}], stored="k")
    choice = [factors([S], [32], [128]), factors([8, 4, S], [2, 64])]
    assert of([QUERIES, keys], choice) == [
        (factors([S], [8, 4], [128]), None),
        (factors([8, 4, S], [128]), [2, 0, 1, 3]),
    ]


def test_loops_of_their_own_are_put_in_order_as_well():
    keys = node(8, 4, S, 128, stored="k")
    choice = [factors([S], [32], [128]), factors([8], [4], [S], [128])]
    assert of([QUERIES, keys], choice) == [
        (factors([S], [8, 4], [128]), None),
        (factors([8], [4], [S], [128]), [2, 0, 1, 3]),
    ]


def test_what_is_reduced_is_no_row():
    """Check that a reduced loop is no row, though the sums go over as many numbers as the tokens."""
    sums = node(S, reduction=[32], stored="r")
    keys = node(8, 4, S, stored="k")
    assert of([sums, keys], [factors([S], [32]), factors([8], [4], [S])]) is None


def test_a_sum_of_each_row_gets_the_loops_of_the_rows():
    sums = node(S, 32, reduction=[128], stored="r")
    keys = node(8, 4, S, 128, stored="k")
    found = of([sums, keys], [factors([S], [32], [128]), factors([8], [4], [S], [128])])
    assert found[0] == (factors([S], [8, 4], [128]), None)


def test_rows_in_the_same_order_stay_as_they_are():
    assert of([QUERIES, node(S, 8, 4, 128)], [factors([S], [32], [128]), factors([S], [8], [4], [128])]) is None


def test_rows_of_numbers_are_left_to_the_passes():
    other = node(32, 64, 128)
    assert of([node(64, 32, 128, stored="q"), other], [factors([64], [32], [128]), factors([32], [64], [128])]) is None


def test_rows_of_another_number_have_no_order_in_common():
    assert of([QUERIES, node(8, 4, T, 128)], [factors([S], [32], [128]), factors([8], [4], [T], [128])]) is None


def test_a_node_that_needs_another_keeps_its_order():
    keys = node(8, 4, S, 128, stored="k", reads="q")
    assert of([QUERIES, keys], [factors([S], [32], [128]), factors([8], [4], [S], [128])]) is None


def test_nodes_of_other_kernels_are_in_any_order():
    keys = node(8, 4, S, 128, stored="k", kernel=1)
    assert of([QUERIES, keys], [factors([S], [32], [128]), factors([8], [4], [S], [128])]) is None
