"""Kernels of rows that go over them in groups, in each of which columns have sums of their own.

The gradient of a weight for each head is a sum over tokens, and a row of its tile is a token with all of its heads. A
kernel of rows that are single heads goes from head to head of a token. If it goes over all tokens of one head, and then
over those of the next, the rows of a head follow each other.

The gradient of a bias that all sequences of a batch add to their attention is a sum of another kind: over as many rows
as there are sequences, for each row and column of a head. Inductor has it in one stage. A kernel of the softmax's rows
has the rows of a group one after the other if it goes over all sequences for one row, and then for the next.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import sympy

from ..reasons import Reason, Unsupported
from . import tiles
from .columns import (
    ColumnSum,
    as_one_stage,
    column_sum,
    is_column_part,
    kind,
    made_sum,
    only_reduces,
    second_stage,
    tile_body,
)
from .layouts import buffer_numel
from .loops import made_once, remake_loop_body, set_loop_body
from .protocols import LoopBody, LoopNode
from .schedule import buffers_made, buffers_read, node_body
from .sizes import Extent, are_equal, as_extent, is_there, known_divisor, of_each, size_hint


@dataclass(frozen=True)
class RowOrder:
    """Hold an order of the rows of a tile in which those of a group follow each other.

    sizes: of loops over the rows, outermost first, the first over the groups; steps: how many rows further each of them
    leads in the order that there was; columns: of the tile.
    """

    sizes: tuple[Extent, ...]
    steps: tuple[Extent, ...]
    columns: int

    @property
    def rows(self) -> Extent:
        """Return the rows of the tile."""
        return as_extent(prod(self.sizes))

    @property
    def is_own(self) -> bool:
        """Return True if the rows are in this order already."""
        places = range(len(self.sizes))
        return all(are_equal(self.steps[place], prod(self.sizes[place + 1 :])) for place in places)

    @property
    def groups(self) -> Extent:
        """Return how many groups there are."""
        return self.sizes[0]


@dataclass(frozen=True)
class _Sums:
    """Hold sums of `rows` rows for each of `columns` columns; body: the loops of one stage, read: by them, as large."""

    body: LoopBody
    rows: Extent
    columns: int
    read: frozenset[str]


def _sums(node: LoopNode) -> _Sums | None:
    """Return the sums of a node, the first stage of two or the only one; None for one that has other loops.

    Unsupported where the two stages are not as expected.
    """
    if made_sum(node) is not None:
        return None
    if is_column_part(node):
        one = column_sum(node)
        return _sums_of(node, as_one_stage(node), one.rows, one.columns) if one.groups == 1 else None
    body = node_body(node)
    rows, columns = (as_extent(prod(sizes)) for sizes in reversed(body.sizes))
    if kind(node) is None or not isinstance(columns, int) or not is_there(rows) or not only_reduces(body):
        return None
    found = _sums_of(node, body, rows, columns)
    return found if any(_steps_over_columns(body, name) for name in found.read) else None


def adds_up_rows(node: LoopNode) -> bool:
    """Return True for sums in one stage of rows that may be in groups."""
    return not is_column_part(node) and _sums(node) is not None


def _sums_of(node: LoopNode, body: LoopBody, rows: Extent, columns: int) -> _Sums:
    least = size_hint(rows) * columns
    read = frozenset(name for name in buffers_read(node) if size_hint(buffer_numel(name)) >= least)
    return _Sums(body, rows, columns, read)


def _steps_over_columns(body: LoopBody, name: str) -> bool:
    """Return True if neighbours in a buffer are in different columns: what reduces its own rows is no such sum."""
    indices = tiles.loaded_at(body, name)
    steps = (index.coeff(variable) for index in indices for variable in body.reduce_vars)
    return bool(indices) and bool(body.reduce_vars) and all(step.is_Integer and step > 1 for step in steps)


def orders_of_rows(node: LoopNode, others: Iterable[LoopNode]) -> list[RowOrder]:
    """Return the orders in which rows that others reduce are those of groups of a node's sums, of longer rows.

    node: the first stage, as Inductor has it, or the only one. Unsupported where its stages are not as expected.
    """
    one = _sums(node)
    if one is None:
        return []
    rest = [other for other in others if not is_column_part(other)]
    widths = dict.fromkeys(width for other in rest if (width := _width(one, other)) is not None)
    found = [_order(one, other, columns) for columns in widths for other in rest]
    return list(dict.fromkeys(order for order in found if order is not None and not order.is_own))


def _width(one: _Sums, node: LoopNode) -> int | None:
    """Return how many columns the rows have that a node reduces; None if they are not those that a sum's consist of."""
    columns = tiles.reduced_elements(node)
    if columns is None or not 1 < columns < one.columns or one.columns % columns:
        return None
    return columns if tiles.covers_tile(node, one.rows * (one.columns // columns), columns) else None


def _order(one: _Sums, node: LoopNode, columns: int) -> RowOrder | None:
    """Return the order in which a node's rows of so many columns are segments of a sum's; None if they are not."""
    rows = one.rows * (one.columns // columns)
    if not tiles.covers_tile(node, rows, columns):
        return None
    for name in sorted(one.read & (buffers_read(node) | buffers_made(node))):
        order = _order_of_sums(one, name, columns)
        places = tiles.places(node_body(node), name, rows, columns) if order is not None else ()
        if columns * tiles.ROW + tiles.COLUMN in places:
            return order
    return None


def _order_of_sums(one: _Sums, name: str, columns: int) -> RowOrder | None:
    """Return the order in which sums go over a buffer's rows of so many columns; None for parts of it."""
    return _order_of_access(_in_groups(one.body, one.columns // columns, columns), name, columns)


def _order_of_access(body: LoopBody, name: str, columns: int) -> RowOrder | None:
    """Return the order in which loops over groups, columns and rows go over a buffer's rows; None for parts of it."""
    (group, column), rows = body.iter_vars, list(body.reduce_vars)
    sizes = [as_extent(size) for size in (body.sizes[0][0], *body.sizes[1])]
    for index in tiles.loaded_at(body, name):
        steps = [as_extent(index.coeff(variable)) for variable in (group, *rows)]
        linear = column + sum(step * variable for step, variable in zip(steps, (group, *rows), strict=True))
        whole_rows = all(known_divisor(step) % columns == 0 for step in steps)
        if whole_rows and sympy.expand(index - linear) == 0:
            numbers = tuple(of_each(step, columns) for step in steps)
            if _are_digits(sizes, numbers):
                return RowOrder(tuple(sizes), numbers, columns)
    return None


def order_of_tile(body: LoopBody, name: str, rows: Extent, columns: int) -> RowOrder | None:
    """Return the order in which loops over a tile access the rows of a buffer, which has them one after the other.

    None where they access parts of it, or the same rows in several orders.
    """
    places = tiles.places(body, name, rows, columns)
    if len(places) != 1:
        return None
    place = sympy.expand(places.pop() - tiles.COLUMN)
    loops = [(digit, as_extent(place.coeff(digit))) for digit in _digits_of_row(place)]
    whole_rows = all(known_divisor(step) % columns == 0 for _, step in loops)
    if not whole_rows or sympy.expand(place - sum(step * digit for digit, step in loops)) != 0:
        return None
    sizes = _sizes_of_digits([digit for digit, _ in loops], rows)
    steps = tuple(of_each(step, columns) for _, step in loops)
    return RowOrder(sizes, steps, columns) if sizes is not None and _are_digits(sizes, steps) else None


def _digits_of_row(place: sympy.Expr) -> list[sympy.Expr]:
    """Return the digits of a row's number in an address, the most significant first; the number itself if it has none.

    Each is a quotient, or the remainder of a quotient, by the weight of the digit.
    """
    from torch.utils._sympy.functions import FloorDiv, ModularIndexing

    digits = [digit for digit in place.atoms(FloorDiv, ModularIndexing) if digit.args[0] == tiles.ROW]
    return sorted(digits, key=lambda digit: size_hint(as_extent(digit.args[1])), reverse=True) or [tiles.ROW]


def _sizes_of_digits(digits: Sequence[sympy.Expr], rows: Extent) -> tuple[Extent, ...] | None:
    """Return how many values each digit of a row's number has; None where they are not all of its digits."""
    sizes: list[Extent] = []
    above = rows
    for digit in digits:
        weight, *end = map(as_extent, digit.args[1:] or (1,))
        sizes.append(of_each(above, weight))
        is_digit = are_equal(sizes[-1], end[0]) if end else above is rows  # a quotient is what is left of the number
        if not is_digit:
            return None
        above = weight
    return tuple(sizes) if above == 1 else None


def _are_digits(sizes: Sequence[Extent], steps: Sequence[Extent]) -> bool:
    """Return True if loops with such steps reach each number once, up to the product of their sizes."""
    reached: Extent = 1
    loops = [pair for pair in zip(steps, sizes, strict=True) if pair[1] != 1]
    for step, size in sorted(loops, key=lambda pair: size_hint(pair[0])):
        if not are_equal(step, reached):
            return False
        reached = as_extent(reached * size)
    return True


def _in_groups(body: LoopBody, groups: int, columns: int) -> LoopBody:
    """Return the loops (`body`) of sums in one stage, of which the outermost goes over groups of its columns."""
    return made_once(body, ("in groups", groups, columns), partial(_with_columns_in_groups, body, groups, columns))


def _with_columns_in_groups(body: LoopBody, groups: int, columns: int) -> LoopBody:
    """Return loops of which those around what they reduce are two: over groups of columns, and those of a group."""
    sizes = [sympy.Integer(groups), sympy.Integer(columns)]
    if list(body.sizes[0]) == sizes:
        return body
    whole = [*body.sizes[0]]

    def run(indices: Sequence[sympy.Symbol], reduced: Sequence[sympy.Symbol]) -> None:
        ranges = dict(zip(indices, sizes, strict=True))
        group, column = indices
        body(_digits_of(group * columns + column, whole, ranges), reduced)

    return remake_loop_body(run, sizes, body.sizes[1])


def _digits_of(number: sympy.Expr, sizes: Sequence[sympy.Expr], ranges: dict[sympy.Symbol, sympy.Expr]) -> list[Any]:
    """Return the digits of a number, of which each has so many values; ranges: of its variables."""
    from torch.utils._sympy.functions import ModularIndexing

    steps = [prod(sizes[place + 1 :]) for place in range(len(sizes))]
    digits = [ModularIndexing(number, step, size) for step, size in zip(steps, sizes, strict=True)]
    return [tiles.simplified(digit, ranges) for digit in digits]


def put_in_order(node: LoopNode, order: RowOrder, undo: contextlib.ExitStack) -> None:
    """Have a node go over the rows of a tile in another order, or add up columns in its groups, until `undo` is closed.

    Unsupported, with nothing changed, where it does neither.
    """
    if is_column_part(node):
        return _add_up_in_groups(node, order, undo)
    summed = _summed_in_order(node, order)
    if summed is not None:
        return set_loop_body(node, summed, undo)
    covers = tiles.covers_tile(node, order.rows, order.columns) or tiles.covers_rows(node, order.rows)
    body = node_body(node)
    turned = made_once(body, ("in order", order), partial(_in_order, body, order)) if covers else None
    if turned is None:
        raise Unsupported(Reason.extents_do_not_agree, f"{node.get_name()}: not over rows of {order.columns}")
    set_loop_body(node, turned, undo)
    return None


def _summed_in_order(node: LoopNode, order: RowOrder) -> LoopBody | None:
    """Return loops of sums in one stage whose groups have the rows of an order; None for a node without such sums."""
    one = _sums(node)
    if one is None or one.columns % order.columns or one.columns // order.columns != order.groups:
        return None
    if all(_order_of_sums(one, name, order.columns) != order for name in one.read):
        return None
    return _in_groups(one.body, one.columns // order.columns, order.columns)


def _in_order(body: LoopBody, order: RowOrder) -> LoopBody | None:
    """Return loops over a tile, or its rows, that go over the rows in another order; None where that is not known."""
    in_row = [order.columns] if are_equal(prod(body.sizes[0]), order.rows * order.columns) else []
    sizes = [sympy.sympify(size) for size in (*order.sizes, *in_row)]

    def place(indices: Sequence[sympy.Symbol]) -> tuple[sympy.Expr, sympy.Expr]:
        return sum(step * index for step, index in zip(order.steps, indices, strict=False)), indices[-1]

    return tiles.with_loops(body, order.rows, order.columns, sizes, place)


def _add_up_in_groups(part: Any, order: RowOrder, undo: contextlib.ExitStack) -> None:
    """Give a sum, in two stages, of whole rows the loops of one in groups, until `undo` is closed.

    The buffer between them keeps its layout, which other loops of Inductor's know; its elements are as many.
    """
    one = column_sum(part)
    rows, columns = as_extent(one.rows * order.groups), of_each(one.columns, order.groups)
    if one.groups != 1 or (rows, columns) != (order.rows, order.columns):
        raise Unsupported(Reason.extents_do_not_agree, f"{part.get_name()}: not over rows of {order.columns}")
    whole = _total_in_groups(one, order.groups, columns)
    tile = tile_body(_in_groups(as_one_stage(part), order.groups, columns), one.buffer, 1)
    parts = one.parts * order.groups
    made = ColumnSum(part, one.total, one.buffer, rows, columns, parts, tile, order.groups, whole, 1)
    part.bridge_column_sum = made
    undo.callback(delattr, part, "bridge_column_sum")
    set_loop_body(one.total, second_stage(made, one.parts), undo)


def _total_in_groups(one: ColumnSum, groups: Extent, columns: int) -> LoopBody:
    """Return the loops of a second stage, over groups and columns; Unsupported where it stores more than its sum."""
    body = node_body(one.total)
    if not only_reduces(body):
        raise Unsupported(Reason.not_liftable, f"{one.total.get_name()}: it does not store its sum alone")
    key = "total in groups", groups, columns
    return made_once(body, key, partial(_with_columns_in_groups, body, groups, columns))
