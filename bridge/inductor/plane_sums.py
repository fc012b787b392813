"""Sums over all elements of each channel, in parts that are planes of memory, or pieces of planes.

Inductor splits a sum over images and pixels by the number of its elements: a part begins in one plane and ends in
another, and what goes over planes has no loop in common with it. Each plane is contiguous, and a part of one, or of a
piece of one, is a row of the kernel that computes what is added up. What is said of sums holds for the largest and the
smallest element, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import sympy

from .columns import (
    as_one_stage,
    is_column_part,
    kind,
    made_sum,
    only_reduces,
    sole_reader,
    stores_in_order,
    sum_of_parts,
)
from .layouts import buffer_numel
from .loops import (
    made_once,
    ops_handler_base,
    remake_loop_body,
    run_loop_body,
    set_loop_body,
)
from .protocols import LoopBody, LoopNode
from .schedule import buffers_read, node_body
from .sizes import Extent, as_extent, coefficient, is_there, known_divisor, number_of_digits, size_hint
from .tiles import loaded_at


@dataclass(frozen=True)
class PlaneSum:
    """Hold a sum in two stages of Inductor's, over planes.

    part, total: the nodes of the stages; buffer: the name of what is between them; body: the loops of one stage;
    outer: how many of those that reduce go over planes, those that are left go over a plane; pieces: of each plane.
    """

    part: LoopNode
    total: LoopNode
    buffer: str
    body: LoopBody
    outer: int
    pieces: Extent

    @property
    def parts(self) -> Extent:
        """Return how many parts each sum has."""
        return as_extent(prod(self.body.sizes[1][: self.outer]) * self.pieces)


def plane_sum(part: LoopNode, rows: int) -> PlaneSum | None:
    """Return the sum of which a node is the first stage, if it is one over planes; None for others.

    rows: how many parts there are to be of all sums, at least, if the planes have so many pieces.
    """
    stages = _stages(part)
    if stages is None:
        return None
    total, name, body = stages
    outer = _loops_over_planes(body, part, rows)
    if outer is None:
        return None
    planes = size_hint(prod(body.sizes[0]) * prod(body.sizes[1][:outer]))
    wanted = rows if outer else _wanted(part, body, rows)
    pieces = _pieces(body.sizes[1][outer:], -(-wanted // planes))
    enough = bool(outer) or (pieces != 1 and planes * size_hint(pieces) >= wanted)
    return PlaneSum(part, total, name, body, outer, pieces) if enough else None


def _wanted(part: LoopNode, body: LoopBody, rows: int) -> int:
    """Return how many parts all sums are to have: not more than Inductor has split them into."""
    return min(rows, size_hint(prod(body.sizes[0]) * part.node.get_layout().size[-1]))


def _stages(part: LoopNode) -> tuple[LoopNode, str, LoopBody] | None:
    """Return (the second stage, the name of the buffer before it, the loops of one stage) of a sum of Inductor's.

    None for a node that is no first stage, or of a sum that cannot be split anywhere else.
    """
    if not is_column_part(part) or made_sum(part) is not None or kind(part) is None:
        return None
    name, total = sole_reader(part)
    if total is None or buffers_read(total) != {name} or is_column_part(total) or kind(total) != kind(part):
        return None
    body, whole = as_one_stage(part), node_body(total)
    return (total, name, body) if only_reduces(whole) and _same_order(body, whole, name) else None


def sum_of_tile(part: LoopNode, rows: int, columns: int) -> PlaneSum | None:
    """Return the sum of all elements of a tile of which a node is the first stage, with a part for each row.

    None for other nodes, and where the loops are not over so many rows, one after the other, whoever is in them.
    """
    stages = _stages(part)
    if stages is None:
        return None
    total, name, body = stages
    iterated, reduced = (list(map(as_extent, sizes)) for sizes in body.sizes)
    if not all(isinstance(size, int) for size in reduced) or prod(iterated) != 1 or prod(reduced) != rows * columns:
        return None
    outer = max(loops for loops in range(len(reduced)) if rows % prod(reduced[:loops]) == 0)
    pieces = rows // prod(reduced[:outer])
    return PlaneSum(part, total, name, body, outer, pieces) if reduced[outer] % pieces == 0 else None


def in_lines(one: PlaneSum) -> PlaneSum:
    """Return a sum with a part for each line of a plane: an iteration of the outermost of several loops over it.

    Other kernels may reduce lines.  A plane is one part where it is a line itself.
    """
    size, *inside = one.body.sizes[1][one.outer :]
    whole = 1 if one.outer else one.pieces
    return replace(one, pieces=as_extent(size) if inside else whole)


def _loops_over_planes(body: LoopBody, part: LoopNode, rows: int) -> int | None:
    """Return how many of the loops that reduce go over planes; None where the others do not go over one in memory.

    A plane is what is inside of the loops over sums, by the steps of all accesses to what has as many elements: where
    no loop that reduces is outside of these, it is all of a sum. Of a single sum it is what is left when the outermost
    loops have so many iterations, if they have, or else all of it.
    """
    iterated, reduced = body.sizes
    if not reduced or not all(is_there(as_extent(size)) for size in (*iterated, *reduced)):
        return None
    if not iterated:
        wanted, counts = _wanted(part, body, rows), (prod(reduced[:loops]) for loops in range(1, len(reduced)))
        return next((loops for loops, count in enumerate(counts, 1) if size_hint(count) >= wanted), 0)
    elements = size_hint(prod(iterated) * prod(reduced))
    real = part.scheduler.mutation_real_name  # loops load from a buffer by its first name, whoever has written into it
    read = {real.get(name, name) for name in buffers_read(part)}
    large = [name for name in read if size_hint(buffer_numel(name)) >= elements]
    found = {_loops_outside(body, index) for name in large for index in loaded_at(body, name)}
    return found.pop() if len(found) == 1 else None


def _loops_outside(body: LoopBody, index: sympy.Expr) -> int | None:
    """Return how many loops that reduce have larger steps than each sum's, before others with smaller ones; else None.

    As it typically is: wherever the loops are divided, the sums are the same.
    """
    kept, steps = ([size_hint(coefficient(index, v)) for v in found] for found in (body.iter_vars, body.reduce_vars))
    if min(*kept, *steps) <= 0:
        return None
    outer = sum(step > max(kept) for step in steps)
    inside = all(step < min(kept) for step in steps[outer:])
    return outer if inside and outer < len(steps) else None


def _pieces(sizes: Sequence[sympy.Expr], wanted: int) -> Extent:
    """Return into how many equal pieces the outermost of some loops is cut: so many if it can be, else the most.

    One that has as many iterations as symbols say is cut by a number that divides these. Where no such number is large
    enough it is cut into all of its iterations, if something is inside: of a piece there is something to add up.
    """
    size, *inside = map(as_extent, sizes)
    if wanted <= 1:
        return 1
    divisors = [pieces for pieces in sympy.divisors(known_divisor(size)) if inside or pieces != size] or [1]
    most = divisors[-1] if isinstance(size, int) or not inside else size
    return next((pieces for pieces in divisors if pieces >= wanted), most)


def _same_order(body: LoopBody, whole: LoopBody, buffer: str) -> bool:
    """Return True if both stages go over the sums in the order of memory, beside or around the parts of each."""
    if list(body.sizes[0]) != list(whole.sizes[0]) or len(whole.sizes[1]) != 1 or not stores_in_order(body):
        return False
    number, (parts,) = number_of_digits(whole.iter_vars, whole.sizes[0]), whole.sizes[1]
    loads = [load.subs(dict.fromkeys(whole.reduce_vars, 0)) for load in loaded_at(whole, buffer)]
    return all(any(sympy.expand(load - step * number) == 0 for step in (1, parts)) for load in loads)


def split_at_planes(one: PlaneSum, undo: contextlib.ExitStack) -> None:
    """Have the parts of a sum be planes, or pieces of planes, until `undo` is closed."""
    from torch._inductor import ir

    part: Any = one.part
    node = part.node
    layout, parts = node.layout, sympy.sympify(one.parts)
    undo.callback(setattr, node, "layout", layout)
    sizes = [*layout.size[:-1], parts]
    strides = ir.FlexibleLayout.contiguous_strides(sizes)
    key = "planes", one.outer, one.pieces
    first = made_once(one.body, key, partial(_first_stage, one))
    second = made_once(node_body(one.total), key, partial(_second_stage, one, node_body(one.total)))
    part.bridge_in_planes = True
    undo.callback(delattr, part, "bridge_in_planes")
    node.layout = ir.FixedLayout(layout.device, layout.dtype, sizes, strides)
    set_loop_body(one.part, first, undo)
    set_loop_body(one.total, second, undo)


def _first_stage(one: PlaneSum) -> LoopBody:
    """Return loops over planes, sums and pieces around those that reduce a piece: in the order of memory."""
    kept, reduced = one.body.sizes
    planes, (size, *inside) = [*reduced[: one.outer]], reduced[one.outer :]
    in_piece, pieces = sympy.sympify(size) / one.pieces, [sympy.sympify(one.pieces)] if one.pieces != 1 else []
    in_pieces = [in_piece] if in_piece != 1 else []

    def run(indices: Sequence[sympy.Symbol], within: Sequence[sympy.Symbol]) -> None:
        from torch._inductor.virtualized import V

        plane, column = indices[: one.outer], indices[one.outer : one.outer + len(kept)]
        piece = indices[len(planes) + len(kept) :]
        part = number_of_digits([*plane, *piece], [*planes, *pieces])
        place = number_of_digits(column, kept) * one.parts + part
        element = in_piece * sum(piece) + sum(within[: len(in_pieces)])
        stores = _stores_at()(V.get_ops_handler(), place)
        run_loop_body(one.body, (column, [*plane, element, *within[len(in_pieces) :]]), stores)

    return remake_loop_body(run, [*planes, *kept, *pieces], [*in_pieces, *inside])


def _stores_at() -> Any:
    """Return the class of a handler that stores the result of a reduction at another place."""

    class StoresAt(ops_handler_base()):  # type: ignore[misc]
        def __init__(self, inner: Any, place: sympy.Expr) -> None:
            self._inner, self._place = inner, place

        def _default(self, name: str, args: tuple, kwargs: dict) -> Any:
            return getattr(self._inner, name)(*args, **kwargs)

        def store_reduction(self, name: str, _: object, value: Any) -> None:
            self._inner.store_reduction(name, self._place, value)

    return StoresAt


def _second_stage(one: PlaneSum, whole: LoopBody) -> LoopBody:
    """Return the loops that add up the parts, which follow each other in memory."""
    sizes = whole.sizes[0]

    def place(indices: Sequence[sympy.Symbol], part: sympy.Symbol) -> sympy.Expr:
        return number_of_digits(indices, sizes) * one.parts + part

    return sum_of_parts(one.total, whole, one.buffer, one.parts, place)
