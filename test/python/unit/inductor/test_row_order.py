"""Test orders of rows in which those of a group follow each other.

Which there are, and what loops and sums have them.
"""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest
import sympy
import torch
from schedules import look_at_column_part, look_at_gpu_schedule
from torch._inductor.sizevars import SizeVarAllocator
from torch._inductor.virtualized import V
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

from bridge import inductor
from bridge.inductor import columns, row_order, tiles
from bridge.inductor.row_order import RowOrder
from bridge.reasons import Unsupported

TOKENS, HEADS, WIDTH = 8192, 32, 128
ORDER = RowOrder((HEADS, TOKENS), (1, HEADS), WIDTH)


def of_heads(x, g):
    """Compute a norm of heads, and the sums over tokens of a weight's gradient."""
    heads = x.unflatten(-1, (HEADS, WIDTH))
    return heads * torch.rsqrt(heads.pow(2).mean(-1, keepdim=True) + 1e-6), (x * g).sum(0)


def of_every_other_token(x, g):
    """Return the norm of heads, and sums over half of the rows that it reduces."""
    return of_heads(x, g)[0], (x[::2] * g[::2]).sum(0)


def look(function, check):
    """Call `check` with (the first stage of the sums, the other nodes) of a function."""
    look_at_column_part(function, [torch.empty(TOKENS, HEADS * WIDTH) for _ in range(2)], check)


def test_the_rows_of_heads_follow_each_other():
    def check(part, others):
        assert row_order.orders_of_rows(part, others) == [ORDER]
        assert (ORDER.rows, ORDER.groups) == (TOKENS * HEADS, HEADS)

    look(of_heads, check)


def test_rows_of_which_only_some_are_added_up_have_no_order():
    def check(part, others):
        assert row_order.orders_of_rows(part, others) == []

    look(of_every_other_token, check)


@pytest.mark.parametrize(
    ("sizes", "steps", "whole"),
    [((3, 4), (1, 3), True), ((3, 4), (4, 1), True), ((3, 1, 4), (1, 7, 3), True), ((3, 4), (1, 4), False)],
)
def test_an_order_has_each_row_once(sizes, steps, whole):
    assert row_order._are_digits(sizes, steps) == whole


def test_sequences_and_tokens_may_both_be_symbols():
    batch, tokens = (sympy.Symbol(name, integer=True, positive=True) for name in "bt")
    with V.set_graph_handler(SimpleNamespace(sizevars=SizeVarAllocator(ShapeEnv()))):
        assert row_order._are_digits((HEADS, batch, tokens), (1, HEADS * tokens, HEADS))
        assert not row_order._are_digits((HEADS, batch, tokens), (1, HEADS * batch, HEADS))


def test_loops_in_order_go_over_the_same_elements():
    """Check that loops in another order go over the same elements: row 1 of head 2 is head 2 of token 1."""

    def check(part, others):
        reduced = next(node for node in others if tiles.reduced_elements(node) == WIDTH)
        (name,) = inductor.buffers_read(reduced)
        assert tiles.places(inductor.node_body(reduced), name, ORDER.rows, WIDTH) == {WIDTH * tiles.ROW + tiles.COLUMN}
        before = inductor.node_body(reduced)
        with contextlib.ExitStack() as undo:
            row_order.put_in_order(reduced, ORDER, undo)
            body = inductor.node_body(reduced)
            assert [int(size) for size in body.sizes[0]] == [HEADS, TOKENS]
            (index,) = set(tiles.loaded_at(body, name))
            head, token, column = *body.iter_vars, *body.reduce_vars
            assert sympy.expand(index - (WIDTH * head + HEADS * WIDTH * token + column)) == 0
        assert inductor.node_body(reduced) is before

    look(of_heads, check)


def test_a_sum_in_groups_has_the_rows_of_each_until_it_is_undone():
    def check(part, others):
        known = columns.column_sum(part)
        before = inductor.node_body(known.total)
        with contextlib.ExitStack() as undo:
            row_order.put_in_order(part, ORDER, undo)
            made = columns.column_sum(part)
            assert (made.rows, made.columns, made.groups) == (ORDER.rows, WIDTH, HEADS)
            assert made.rows // made.parts == known.rows // known.parts, "rows of a part"
            assert [int(size) for size in inductor.node_sizes(made.total)[0]] == [HEADS, WIDTH]
        assert columns.column_sum(part) == known and inductor.node_body(known.total) is before

    look(of_heads, check)


def test_what_is_over_other_rows_has_no_such_order():
    def check(part, others):
        wrong = RowOrder((HEADS, TOKENS // 2), (1, HEADS), WIDTH)
        for node in (part, *others):
            with pytest.raises(Unsupported), contextlib.ExitStack() as undo:
                row_order.put_in_order(node, wrong, undo)

    look(of_heads, check)


def test_loops_that_end_within_a_row_have_no_order():
    body = SimpleNamespace(
        iter_vars=sympy.symbols("a b"), reduce_vars=[], sizes=([sympy.Integer(19), sympy.Integer(5)], [])
    )
    assert row_order._in_order(body, RowOrder((5, 1), (1, 5), 19)) is None


BATCH, PLACES, KEYS = 16, 6144, 512


def of_biased(scores, gradient):
    """Compute the gradient of a softmax, and of a bias that all sequences of a batch share."""
    found = (scores * gradient).sum(-1, keepdim=True) * scores
    return found, found.sum(0)


def of_each_sequence(scores, gradient):
    """Add up rows that are adjacent, of each sequence."""
    found = (scores * gradient).sum(-1, keepdim=True) * scores
    return found, found.sum(1)


def look_at_sums(function, check):
    """Call `check` with (the sums in one stage, the other nodes) of a function."""
    seen = []

    def find(schedule):
        nodes = [node for kernel in schedule for node in inductor.loop_nodes(kernel)]
        (sums,) = (node for node in nodes if row_order._sums(node) is not None)
        seen.append(sums)
        check(sums, [node for node in nodes if node is not sums])

    look_at_gpu_schedule(function, [torch.empty(BATCH, PLACES, KEYS) for _ in range(2)], find)
    assert seen


def test_sums_over_a_batch_have_the_rows_of_all_sequences_one_after_the_other():
    """Check that sums over a batch have the rows of all sequences in one order, also if the sums have one stage."""

    def check(sums, others):
        order = RowOrder((PLACES, BATCH), (1, PLACES), KEYS)
        assert row_order.orders_of_rows(sums, others) == [order] and not order.is_own
        before = inductor.node_body(sums)
        with contextlib.ExitStack() as undo:
            for node in (sums, *others):
                row_order.put_in_order(node, order, undo)
            body = inductor.node_body(sums)
            assert [list(map(int, sizes)) for sizes in body.sizes] == [[PLACES, KEYS], [BATCH]]
        assert inductor.node_body(sums) is before

    look_at_sums(of_biased, check)


def test_sums_of_rows_that_follow_each_other_have_no_other_order():
    def check(sums, others):
        assert row_order.orders_of_rows(sums, others) == []

    look_at_sums(of_each_sequence, check)
    assert RowOrder((3, 4, 5), (20, 5, 1), 7).is_own and not RowOrder((3, 4), (1, 3), 7).is_own


def of_turned_heads(x, g):
    """Add up products whose loads take heads of 8 tokens at a time, as the products are not stored."""
    return (x.view(HEADS, TOKENS, WIDTH).transpose(0, 1) * g.view(TOKENS, HEADS, WIDTH)).flatten(0, 1).sum(0)


def test_a_tile_has_the_order_in_which_it_loads_rows():
    """Check that a tile has the order in which it loads rows: of one input its own, of the other head by head."""

    def check(part, others):
        tile, rows = columns.column_sum(part).tile, TOKENS * HEADS
        found = [row_order.order_of_tile(tile, name, rows, WIDTH) for name in sorted(inductor.buffers_read(part))]
        assert found[0] == RowOrder((TOKENS, HEADS), (1, TOKENS), WIDTH)
        assert found[1].is_own
        assert row_order.order_of_tile(tile, "other", rows, WIDTH) is None
        assert row_order.order_of_tile(tile, "arg0_1", rows // 2, WIDTH * 2) is None, "two heads of a token are no row"

    look(of_turned_heads, check)


def test_what_is_no_digit_has_no_size():
    """Check that what is no digit has no size: two quotients, another size's remainder, no last digit."""
    quotient, other = FloorDiv(tiles.ROW, 64), FloorDiv(tiles.ROW, 8)
    middle, last = (ModularIndexing(tiles.ROW, weight, 8) for weight in (8, 1))
    assert row_order._sizes_of_digits([quotient, middle, last], 256) == (4, 8, 8)
    assert row_order._sizes_of_digits([tiles.ROW], 256) == (256,)
    for wrong in ([quotient, other], [quotient, ModularIndexing(tiles.ROW, 1, 32)], [quotient]):
        assert row_order._sizes_of_digits(wrong, 256) is None
