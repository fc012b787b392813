"""Have the nodes of a kernel go over its rows in one order, where a size divides the rows of one of them.

Inductor puts two nodes into a kernel that have as many rows, whatever these are: of queries, `s` tokens of 32 heads,
and of keys that are repeated for them, 32 heads of `s` tokens.  The rows of the second are 8 heads, 4 copies of each,
and `s` tokens: no affine expression divides by a size, so they cannot be loops over tokens and 32 heads.  In another
order they can: tokens, 8 heads, 4 copies.  The rows of the first are then in the same loops, with 32 cut into 8 and 4.
Neither needs the other, so which rows are one iteration does not matter.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import sympy

from .access import exact_quotient
from .loops import Factors, NodeLoops


class OrderedLoops(NamedTuple):
    """Hold the loops of a node, and their order, outermost first, by their places; None as they are."""

    factors: Factors
    order: list[int] | None = None


def loops_in_one_order(nodes: Sequence[NodeLoops], choice: Sequence[Factors]) -> list[OrderedLoops] | None:
    """Return the loops of a choice, with rows in the order of other nodes of their kernel; None if all are so now."""
    found = [OrderedLoops(own) for own in choice]
    iteration = [own[: len(node.iteration)] for own, node in zip(choice, nodes, strict=True)]
    for place, node in enumerate(nodes):
        others = _independent(node, nodes)
        loops = _rows_of_others(iteration[place], [iteration[other] for other in others])
        if loops is None:
            continue
        count, parts = loops
        rows = list(itertools.chain(*choice[place][:count]))
        left = _whole(choice[place], node, count)
        found[place] = OrderedLoops(left, _order(rows, parts, sum(map(len, left[: len(node.iteration)]))))
        for other in others:
            if _has_rows(iteration[other], parts):
                found[other] = OrderedLoops([*parts, *choice[other][len(parts) :]])
    return found if any(own.order is not None for own in found) else None


def _independent(node: NodeLoops, nodes: Sequence[NodeLoops]) -> list[int]:
    """Return the places of the other nodes of a node's kernel; none where it needs one of them, or one needs it."""
    others = [place for place, own in enumerate(nodes) if own.kernel == node.kernel and own is not node]
    touched = _touched(node)
    apart = all(
        own.stored.isdisjoint(touched) and node.stored.isdisjoint(_touched(own))
        for own in map(nodes.__getitem__, others)
    )
    return others if apart else []


def _touched(node: NodeLoops) -> set[str]:
    return {buffer for buffer, _ in node.strides} | node.stored


def _rows_of_others(own: Factors, others: Sequence[Factors]) -> tuple[int, Factors] | None:
    """Return (how many loops are a node's rows, their factors by loops of the rows of another node).

    None where no other node has the same rows in another order.  Rows of which a number is known are one loop.
    """
    for count, other in itertools.product(range(1, len(own) + 1), others):
        rows = list(itertools.chain(*own[:count]))
        parts = _grouped(rows, [part[0] for part in itertools.takewhile(lambda part: len(part) == 1, other)])
        if parts is not None and not all(factor.is_Integer for factor in rows):
            return None if list(itertools.chain(*parts)) == rows else (count, parts)
    return None


def _grouped(rows: list[sympy.Expr], loops: list[sympy.Expr]) -> Factors | None:
    """Return the rows' factors grouped so that the outermost of some loops are their products; None if they are not.

    >>> s = sympy.Symbol("s", integer=True, positive=True)
    >>> _grouped([sympy.Integer(8), sympy.Integer(4), s], [s, sympy.Integer(32), sympy.Integer(128)])
    [[s], [8, 4]]
    """
    rest, parts = list(rows), []
    for extent in loops:
        if not rest:
            break
        part = _taken(rest, extent)
        if part is None:
            return None
        parts.append(part)
    return None if rest else parts


def _taken(rest: list[sympy.Expr], extent: sympy.Expr) -> list[sympy.Expr] | None:
    """Take the factors of an extent out of `rest`, the first that divide it; None if they do not make it."""
    part = []
    for factor in list(rest):
        quotient = exact_quotient(extent, factor)
        if factor != 1 and quotient is not None:
            rest.remove(factor)
            part.append(factor)
            extent = quotient
    return part if part and extent == 1 else None


def _whole(factors: Factors, node: NodeLoops, rows: int) -> Factors:
    """Return a node's loops with those after its rows whole that only numbers divide, as others of its kernel are."""
    cuts = [*node.cuts, *(set() for _ in factors[len(node.cuts) :])]
    after = zip(factors[rows:], cuts[rows:], strict=True)
    known = ([math.prod(part)] if all(isinstance(cut, int) for cut in own) else part for part, own in after)
    return [*factors[:rows], *known]


def _order(rows: list[sympy.Expr], parts: Factors, loops: int) -> list[int]:
    """Return the places of the loops of rows as the parts have them, and then those of the node's other loops."""
    left, order = list(enumerate(rows)), []
    for factor in itertools.chain(*parts):
        taken = next(pair for pair in left if pair[1] == factor)
        left.remove(taken)
        order.append(taken[0])
    return order + list(range(len(rows), loops))


def _has_rows(factors: Factors, parts: Factors) -> bool:
    """Return True if the outermost loops of a node are those of the rows, uncut."""
    return factors[: len(parts)] == [[sympy.expand(math.prod(part))] for part in parts]
