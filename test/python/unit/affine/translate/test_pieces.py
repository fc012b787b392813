"""Test loops of which one iteration has what one of another node reads."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy
import torch
from torch._inductor.virtualized import V

from bridge.affine.translate.group import GroupTarget, NodeSource, make_prover, trace_group, translate_group
from bridge.affine.translate.loops import NodeLoops
from bridge.affine.translate.pieces import loops_in_pieces
from bridge.affine.translate.trace import iteration_variable

p, q, r = sympy.symbols("p q r", integer=True, nonnegative=True)


def numbers(*extents):
    return [sympy.Integer(extent) for extent in extents]


#: Rows of 32 elements, for each of 6 heads and 5 tokens.
ROWS = NodeLoops(
    numbers(6, 5), numbers(32), 0, strides=[("x", numbers(160, 32, 1)), ("sums", numbers(5, 1, 0))], stored={"sums"}
)


def reading(*offsets, stride=10, kernel=1):
    """Return a node over 3 heads, 5 tokens and a row, which reads the sums of some heads in each iteration."""
    return NodeLoops(
        numbers(3, 5, 32),
        [],
        kernel,
        indices=[("sums", stride * p + q + offset) for offset in offsets],
        variables=[p, q, r],
    )


def cut(*nodes, rows=([[6], [5], [32]], [[3], [5], [32]])):
    return loops_in_pieces(nodes, [[numbers(*part) for part in own] for own in rows])


def test_pairs_that_are_next_to_each_other():
    rows, reader = cut(ROWS, reading(0, 5))
    assert rows == ([[3, 2], [5], [32]], 1)
    assert reader == ([[3], [5], [32]], None)


def test_halves_and_thirds():
    assert cut(ROWS, reading(0, 15, stride=5))[0] == ([[2, 3], [5], [32]], 0)
    assert cut(ROWS, reading(0, 10, 20))[0] == ([[3, 2], [5], [32]], 0)


def test_the_offsets_may_be_in_any_order_and_repeated():
    assert cut(ROWS, reading(10, 5, 5, 0))[0] == cut(ROWS, reading(0, 5, 10))[0]


def test_a_flattened_loop_is_cut_by_its_factors():
    flat = replace(ROWS, iteration=numbers(30), strides=[("sums", numbers(1, 0))])
    rows, _ = cut(flat, reading(0, 5), rows=([[6, 5], [32]], [[3], [5], [32]]))
    assert rows == ([[3, 2, 5], [32]], 1)


def reading_own(*own, extent=6):
    """Return a node over 5 tokens and heads, which reads all sums of its token, and its own head's at `own`."""
    indices = [("sums", p + 5 * head) for head in range(6)] + [("sums", index) for index in own]
    return NodeLoops(numbers(5, extent), [], 1, indices=indices, variables=[p, q])


def test_what_reads_the_results_and_its_own_one_is_unrolled_as_well():
    """Check that a node that reads all results and its own one is cut, as the gradient of a softmax over experts."""
    rows, reader = cut(ROWS, reading_own(p + 5 * q), rows=([[6], [5], [32]], [[5], [6]]))
    assert rows == ([[6], [5], [32]], 0)
    assert reader == ([[5], [6]], 1)


def test_nodes_in_the_kernel_of_what_reads_its_own_result_are_unrolled_as_well():
    flat = NodeLoops(numbers(30), [], 1)
    found = cut(ROWS, reading_own(p + 5 * q), flat, rows=([[6], [5], [32]], [[5], [6]], [[5, 6]]))
    assert found[2] == ([[5, 6]], 1)
    other = cut(ROWS, reading_own(p + 5 * q), flat, rows=([[6], [5], [32]], [[5], [6]], [[30]]))
    assert other is None


@pytest.mark.parametrize(
    "reader",
    [reading_own(p + 5 * q, extent=5), reading_own(p + 10 * q), reading_own(p + 5 * q + 5), reading_own(q)],
    ids=["fewer", "steps", "next", "other"],
)
def test_what_reads_other_results_than_its_own_is_no_piece(reader):
    assert cut(ROWS, reader, rows=([[6], [5], [32]], [[5], [6]])) is None


def test_a_loop_over_results_that_has_factors_is_not_unrolled():
    rows, reader = cut(ROWS, reading_own(p + 5 * q), rows=([[6], [5], [32]], [[5], [2, 3]]))
    assert (rows[1], reader) == (0, ([[5], [2, 3]], None))


@pytest.mark.parametrize("offsets", [(0,), (0, 5, 15), (0, 7), (0, q), tuple(range(0, 50, 5))], ids=str)
def test_other_offsets_are_no_pieces(offsets):
    """Check that other offsets are no pieces: one alone, unequal steps, no whole heads, what varies, and too many."""
    assert cut(ROWS, reading(*offsets)) is None


t = sympy.Symbol("t", integer=True, positive=True)


def cut_of_tokens(*offsets, tokens=t):
    """Return the loops of 6 heads with a symbolic number of tokens, and of a reader of the sums of some of 3 heads."""
    strides = [("x", [32 * tokens, *numbers(32, 1)]), ("sums", [tokens, *numbers(1, 0)])]
    rows = replace(ROWS, iteration=[sympy.Integer(6), tokens], strides=strides)
    factors = [[[sympy.Integer(6)], [tokens], numbers(32)], [numbers(3), [tokens], numbers(32)]]
    return loops_in_pieces([rows, reading(*offsets, stride=2 * tokens)], factors)


@pytest.mark.parametrize(
    ("offsets", "heads", "unrolled"),
    [((0, t), [3, 2], 1), ((t, 0, t), [3, 2], 1), ((0, 3 * t), [2, 3], 0), ((2 * t, 0, 4 * t), [3, 2], 0)],
    ids=str,
)
def test_results_that_are_a_symbolic_number_of_tokens_apart_are_pieces(offsets, heads, unrolled):
    """Check that results a symbolic number of tokens apart are pieces, as of heads stored one after the other."""
    assert cut_of_tokens(*offsets)[0] == ([heads, [t], [32]], unrolled)


@pytest.mark.parametrize("offsets", [(0, t, 3 * t), (0, 1, t), (0, t + 1), (0, t * q)], ids=str)
def test_other_symbolic_offsets_are_no_pieces(offsets):
    """Check that other symbolic offsets are no pieces: unequal steps, several sizes, no whole tokens, what varies."""
    assert cut_of_tokens(*offsets) is None


def test_steps_of_a_size_without_a_sign_are_no_pieces():
    unknown = sympy.Symbol("u", integer=True)
    assert cut_of_tokens(0, unknown, tokens=unknown) is None


def test_what_a_node_reads_of_its_own_kernel_is_no_piece():
    assert cut(ROWS, reading(0, 5, kernel=0)) is None


def test_what_is_not_reduced_is_no_piece():
    assert cut(replace(ROWS, reduction=[]), reading(0, 5), rows=([[6], [5]], [[3], [5], [32]])) is None


#: Products of 4 rows of each token with their weights, and what adds up the rows of a token.
PRODUCTS = NodeLoops(numbers(5, 4, 32), [], 0, strides=[("products", numbers(128, 32, 1))], stored={"products"})
ADDING = NodeLoops(
    numbers(5, 32), [], 1, indices=[("products", 128 * p + q + 32 * row) for row in range(4)], variables=[p, q]
)


def cut_of_products(products, adding):
    rows = [[numbers(n) for n in node.iteration] for node in (products, adding)]
    return loops_in_pieces([products, adding], rows)


def test_elements_that_a_lane_adds_up_are_computed_in_that_lane():
    """Check that a loop over the rows that one iteration adds up is unrolled in what computes their products."""
    assert cut_of_products(PRODUCTS, ADDING) == [([[5], [4], [32]], 1), ([[5], [32]], None)]


def test_some_of_the_elements_of_a_loop_are_no_pieces():
    """Check that halves of a row of products, of which the sum needs both, are left to the lanes of a row."""
    halves = replace(ADDING, indices=[("products", 128 * p + q + 64 * row) for row in range(2)])
    assert cut_of_products(PRODUCTS, halves) is None
    assert cut_of_products(replace(PRODUCTS, stored=set()), ADDING) is None


def test_nodes_of_one_kernel_are_cut_alike():
    other = replace(ROWS, stored={"squares"}, strides=[])
    found = loops_in_pieces(
        [ROWS, other, reading(0, 5)], [[numbers(6), numbers(5), numbers(32)]] * 2 + [[[3], [5], [32]]]
    )
    assert found[0] == found[1] == ([[3, 2], [5], [32]], 1)
    flat = replace(other, iteration=numbers(30), reduction=[])
    rows = [[numbers(6), numbers(5), numbers(32)], [numbers(30)], [[3], [5], [32]]]
    assert loops_in_pieces([ROWS, flat, reading(0, 5)], rows) is None


@pytest.mark.parametrize("inside", [[], [32], [8, 4]], ids=str)
def test_nodes_of_one_kernel_may_differ_inside_of_what_is_cut(inside):
    """Check that nodes of one kernel may differ inside of what is cut, as where it also stores scales of blocks."""
    stored = replace(ROWS, iteration=numbers(6, 5, *inside), reduction=[], stored={"scales"}, strides=[])
    rows = [[numbers(6), numbers(5), numbers(32)], [numbers(6), numbers(5), *([n] for n in numbers(*inside))]]
    found = loops_in_pieces([ROWS, stored, reading(0, 5)], [*rows, [[3], [5], [32]]])
    assert found[:2] == [([[3, 2], [5], [32]], 1), ([[3, 2], [5], *([n] for n in inside)], 1)]


#: A row of 32 elements of each of 5 tokens, and its products with those of 3 experts, added up.
TOKENS = NodeLoops(numbers(5, 32), [], 0, strides=[("token", numbers(32, 1))])
DOTS = NodeLoops(numbers(5, 3), numbers(32), 1, strides=[("token", numbers(32, 0, 1)), ("experts", numbers(96, 32, 1))])


def cut_of_dots(dots, other=TOKENS):
    return loops_in_pieces([other, dots], [[numbers(5), numbers(32)], [*([n] for n in dots.iteration), numbers(32)]])


def test_a_loop_in_which_each_iteration_reduces_the_same_row_kept_it_from_a_band():
    """Check that the loop over experts is unrolled in what reduces the row of their token with each of theirs."""
    assert cut_of_dots(DOTS) == [([[5], [32]], None), ([[5], [3], [32]], 1)]


@pytest.mark.parametrize(
    "dots",
    [
        replace(DOTS, strides=DOTS.strides[1:]),
        replace(DOTS, strides=[("token", numbers(32, 0, 0)), DOTS.strides[1]]),
        replace(DOTS, iteration=numbers(5, 9)),
        replace(DOTS, iteration=[sympy.Integer(5), t]),
        replace(DOTS, kernel=0),
    ],
    ids=["no row", "one element", "many", "unknown", "one kernel"],
)
def test_loops_without_a_common_row_or_of_many_iterations_are_not_unrolled(dots):
    assert cut_of_dots(dots) is None


def test_a_loop_that_others_of_its_kernel_do_not_have_is_not_unrolled():
    rows = [[numbers(5), numbers(32)], [numbers(5), numbers(3), numbers(32)], [numbers(15)]]
    assert loops_in_pieces([TOKENS, DOTS, NodeLoops(numbers(15), [], 1)], rows) is None


class Sum:
    """Reduce a row of 8 elements under a guard, and store the sum."""

    def __call__(self, rows, columns):
        ops = V.get_ops_handler()
        (row,), (column,) = rows, columns
        inside = ops.lt(ops.index_expr(row, torch.int64), ops.constant(3, torch.int64))
        weight = ops.load("weight", column)
        value = ops.masked(inside, lambda: ops.mul(ops.load("x", 8 * row + column), weight), 0.0)
        ops.store_reduction("sums", row, ops.reduction(torch.float32, torch.float32, "sum", value))


def test_an_unrolled_loop_is_emitted_once_for_each_number(graph):
    """Check that an unrolled loop is emitted once for each number, with that number in subscripts and guards.

    What does not depend on it is loaded in each copy.
    """
    source = NodeSource("op0", Sum(), (numbers(4), numbers(8)), 0, loops=[numbers(2, 2), numbers(8)], unrolled=1)
    (trace,) = trace_group([source])
    assert trace.unrolled == (iteration_variable(1), 2)
    assert trace.iter_vars == [(iteration_variable(0), 2)]
    sizes = {"x": 32, "weight": 8, "sums": 4}
    target = GroupTarget(lambda _: torch.float32, lambda name: sympy.Integer(sizes[name]), make_prover(), rounds=False)
    text = str(translate_group("f", [source], [trace], target).module)
    assert text.count("affine.for") == 3
    assert "%arg2[%arg3, 0] " in text and "%arg2[%arg3, 1] " in text
    assert "(d0) : (d0 * -2 + 2 >= 0)" in text and "(d0) : (d0 * -2 + 1 >= 0)" in text
