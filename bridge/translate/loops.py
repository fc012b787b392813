"""Which loops the nodes of a group are translated with: Inductor flattens loops, each node for itself.

A pointwise node over 4096 rows of 32 blocks may have one loop of 131072 iterations beside a reduction over
(4096, 32).  Where the loops of another node are a finer factorisation of a node's own, it gets those.
"""

from __future__ import annotations

import math

import sympy

from .access import exact_quotient

#: (iteration extents, reduction extents) of a node.
Sizes = tuple[list[sympy.Expr], list[sympy.Expr]]

#: For every iteration loop of a node the extents of the loops that take its place.
Factors = list[list[sympy.Expr]]


def shared_loops(sizes: list[Sizes]) -> list[Factors]:
    """One entry a node: its own loops, or those that another node's split them into."""
    wholes = [[sympy.sympify(extent) for extent in iteration] for iteration, _ in sizes]
    targets = [target for s in sizes for target in _targets(s)]
    return [_finest(own, targets) for own in wholes]


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
