"""Which loops the nodes of a group are translated with: Inductor flattens loops, each node for itself.

A pointwise node over 4096 rows of 32 blocks may have one loop of 131072 iterations beside a reduction over
(4096, 32).  Where the loops of another node are a finer factorisation of a node's own, it gets those.

A row of symbolic length is a number of its parts, if the group has such: a loop of `2*t` iterations beside one of `t`
becomes two, of 2 and of `t`.  Of a length that is a number, the passes find the parts themselves.
"""

from __future__ import annotations

import math

import sympy

from .access import exact_quotient

#: (iteration extents, reduction extents) of a node.
Sizes = tuple[list[sympy.Expr], list[sympy.Expr]]

#: For every loop of a node the extents of the loops that take its place.
Factors = list[list[sympy.Expr]]

#: The most parts that a row of symbolic length is cut into.
MAX_PARTS = 16


def shared_loops(sizes: list[Sizes]) -> list[Factors]:
    """One entry a node, loops of a reduction after the others: its own, or what other nodes' split them into."""
    wholes = [[sympy.sympify(extent) for extent in iteration] for iteration, _ in sizes]
    targets = [target for s in sizes for target in _targets(s)]
    reductions = [[[sympy.sympify(extent)] for extent in reduction] for _, reduction in sizes]
    return [_finest(own, targets) + reduced for own, reduced in zip(wholes, reductions, strict=True)]


def cut_rows(nodes: list[Factors], interleaved: bool = False) -> list[Factors]:
    """Every symbolic extent but a node's outermost as a number of the smallest one that divides it.

    interleaved: the parts are every so-manieth element, and not contiguous ones.

    >>> t, n = sympy.symbols("t n", integer=True, positive=True)
    >>> cut_rows([[[n], [2 * t]], [[n, t]]])
    [[[n], [2, t]], [[n, t]]]
    """
    symbolic = {extent for node in nodes for part in node for extent in part if not extent.is_Integer}
    parts = {extent: _parts(extent, symbolic)[:: -1 if interleaved else 1] for extent in symbolic}
    return [[_cut(loops, parts, first=not n) for n, loops in enumerate(node)] for node in nodes]


def _parts(extent: sympy.Expr, symbolic: set[sympy.Expr]) -> list[sympy.Expr]:
    quotients = [exact_quotient(extent, part) for part in symbolic]
    number = max([q for q in quotients if q is not None and q.is_Integer and 1 <= q <= MAX_PARTS])
    return [extent] if number == 1 else [number, exact_quotient(extent, number)]


def _cut(loops: list[sympy.Expr], parts: dict[sympy.Expr, list[sympy.Expr]], first: bool) -> list[sympy.Expr]:
    kept = loops[:1] if first else []
    return kept + [part for extent in loops[len(kept) :] for part in parts.get(extent, [extent])]


def _targets(sizes: Sizes) -> list[list[sympy.Expr]]:
    iteration, reduction = ([sympy.sympify(extent) for extent in group] for group in sizes)
    return [iteration, [*iteration, *reduction]] if reduction else [iteration]


def _finest(own: list[sympy.Expr], targets: list[list[sympy.Expr]]) -> Factors:
    refined = [factors for target in targets if (factors := refine(own, target)) is not None]
    return max(refined, key=lambda factors: sum(map(len, factors)), default=[[extent] for extent in own])


def refine(own: list[sympy.Expr], target: list[sympy.Expr]) -> Factors | None:
    """`target` cut where the loops of `own` end, so that each is the product of its part; None if that cannot be.

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
