"""Which loops the nodes of a group are translated with: Inductor flattens loops, each node for itself.

A pointwise node over 4096 rows of 32 blocks may have one loop of 131072 iterations beside a reduction over
(4096, 32).  Where the loops of another node are a finer factorisation of a node's own, it gets those.

A row of symbolic length is a number of its parts, if the group has such: a loop of `2*t` iterations beside one of `t`
becomes two, of 2 and of `t`.  Of a length that is a number, the passes find the parts themselves.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import sympy

from .access import exact_quotient

#: (iteration extents, reduction extents) of a node.
Sizes = tuple[list[sympy.Expr], list[sympy.Expr]]

#: For every loop of a node the extents of the loops that take its place.
Factors = list[list[sympy.Expr]]

#: The most parts that a row of symbolic length is cut into.
MAX_PARTS = 16


@dataclass(frozen=True)
class NodeLoops:
    """The loops of one node.

    iteration / reduction: their extents; kernel: the one that Inductor has put the node into; cuts: for each
    iteration loop the numbers that its indices divide it by (`inductor.loop_cuts`).
    """

    iteration: list[sympy.Expr]
    reduction: list[sympy.Expr]
    kernel: int
    cuts: list[set[int]] = field(default_factory=list)


def shared_loops(nodes: list[NodeLoops]) -> list[Factors]:
    """Return the loops of each node, those of a reduction last: its own, or those of other nodes that factor them."""
    targets = [target for node in nodes for target in _targets(node)]
    rows = [_finest(node, targets, [n.iteration for n in nodes if n.kernel == node.kernel]) for node in nodes]
    return [_arranged(own, node.cuts) + [[e] for e in node.reduction] for own, node in zip(rows, nodes, strict=True)]


def cut_rows(nodes: list[Factors], interleaved: bool = False) -> list[Factors]:
    """Split every symbolic extent but a node's outermost into a number and the smallest extent that divides it.

    interleaved: the parts are every so-manieth element, and not contiguous ones.

    >>> t, n = sympy.symbols("t n", integer=True, positive=True)
    >>> cut_rows([[[n], [2 * t]], [[n, t]]])
    [[[n], [2, t]], [[n, t]]]
    """
    symbolic = {extent for node in nodes for part in node for extent in part if not extent.is_Integer}
    parts = {extent: _parts(extent, symbolic)[:: -1 if interleaved else 1] for extent in symbolic}
    return [[_cut(loops, parts, first=not n) for n, loops in enumerate(node)] for node in nodes]


def _parts(extent: sympy.Expr, symbolic: set[sympy.Expr]) -> list[sympy.Expr]:
    """Return (number, extent of a part), or the extent alone if none of `symbolic` divides it."""
    quotients = [exact_quotient(extent, part) for part in symbolic]
    number = max([q for q in quotients if q is not None and q.is_Integer and 1 <= q <= MAX_PARTS])
    return [extent] if number == 1 else [number, exact_quotient(extent, number)]


def _cut(loops: list[sympy.Expr], parts: dict[sympy.Expr, list[sympy.Expr]], first: bool) -> list[sympy.Expr]:
    """Replace extents by their parts; first: keep the outermost."""
    kept = loops[:1] if first else []
    return kept + [part for extent in loops[len(kept) :] for part in parts.get(extent, [extent])]


def _targets(node: NodeLoops) -> list[list[sympy.Expr]]:
    """Return the factorisations that other nodes may take over from a node."""
    return [node.iteration, [*node.iteration, *node.reduction]] if node.reduction else [node.iteration]


def _finest(node: NodeLoops, targets: list[list[sympy.Expr]], same_kernel: list[list[sympy.Expr]]) -> Factors:
    """Return the finest factors of a node's iteration loops.

    same_kernel: iteration loops of the nodes in its kernel, which may go over its rows and then what it reduces.
    """
    own = node.iteration
    refined = [factors for target in targets if (factors := refine(own, target)) is not None]
    if node.reduction:
        both = (refine([*own, *node.reduction], target) for target in same_kernel)
        refined += [factors[: len(own)] for factors in both if factors is not None]
    return max(refined, key=lambda factors: sum(map(len, factors)), default=[[extent] for extent in own])


def _arranged(factors: Factors, cuts: list[set[int]]) -> Factors:
    """Order the factors of each loop so that loops end where indices divide it, if there is such an order."""
    pairs = zip(factors, cuts or [set() for _ in factors], strict=True)
    return [(arrange(part, sorted(cut)) if cut else None) or part for part, cut in pairs]


def arrange(factors: list[sympy.Expr], cuts: list[int]) -> list[sympy.Expr] | None:
    """Order `factors` so that products of innermost ones are the ascending `cuts`; None if there is no such order.

    >>> arrange([sympy.Integer(n) for n in (64, 8, 7, 8, 7)], [49])
    [64, 8, 8, 7, 7]
    """
    if not all(factor.is_Integer for factor in factors):
        return None
    total = math.prod(factors)
    bounds = [total, *reversed([cut for cut in cuts if cut < total]), 1]
    rest, arranged = list(factors), []
    for outer, inner in itertools.pairwise(bounds):
        part = _take(rest, outer // inner) if outer % inner == 0 else None
        if part is None:
            return None
        arranged += part
    return arranged


def _take(rest: list[sympy.Expr], product: sympy.Expr) -> list[sympy.Expr] | None:
    """Take factors of a product out of `rest`, the first that fit; None if they do not make it."""
    part = []
    for factor in list(rest):
        if product % factor == 0:
            product //= factor
            rest.remove(factor)
            part.append(factor)
    return part if product == 1 else None


def refine(own: list[sympy.Expr], target: list[sympy.Expr]) -> Factors | None:
    """Cut `target` where the loops of `own` end, so that each is the product of its part; None if that cannot be.

    >>> refine([24, 8], [6, 4, 8])
    [[6, 4], [8]]
    """
    factors: Factors = []
    rest = [extent for extent in target if extent != 1]
    for extent in own:
        part: list[sympy.Expr] = []
        while rest and math.prod(part) != extent:
            part.append(rest.pop(0))
            if exact_quotient(extent, sympy.expand(math.prod(part))) is None:
                return None
        if sympy.expand(math.prod(part) - extent) != 0:
            return None
        factors.append(part or [extent])
    return None if rest else factors
