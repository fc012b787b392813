"""Merge loops of whose product Inductor does not know that it divides it by each of them.

It divides `n*h**2` by `n`, but not `h**2` by `h`: images with as many lines as columns have such loops where both are
one symbol.  It writes `n*(t - 1)` as `n*t - n`, and does not divide that by `n`: so many are all tokens but the last.
Inductor splits the elements of a kernel of Triton's into the loops of each node, from the outermost one on.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import sympy
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

from .loops import remake_loop_body
from .protocols import LoopBody
from .sizes import are_equal
from .tiles import splits_into, splits_unmerged_into


def with_loops_to_split(body: LoopBody, columns: sympy.Expr) -> LoopBody:
    """Return a LoopBody whose loops Inductor can split a kernel's elements into, if such are made by merging some.

    columns: of each row of the kernel. The body itself where Inductor can, or where no loops are to be merged.
    """
    runs = [_runs(part) for part in body.sizes]
    groups = _groups(body, columns)
    if all(len(own) == len(part) for own, part in zip(runs, body.sizes, strict=True)) or _is_split(body, groups):
        return body

    def run(*indices: Sequence[sympy.Expr]) -> None:
        body(*(_digits_of_all(own, part) for own, part in zip(runs, indices, strict=True)))

    merged = remake_loop_body(run, *([prod(run) for run in own] for own in runs))
    return merged if _is_split(merged, groups) else body


def _is_split(body: LoopBody, groups: Sequence[sympy.Expr]) -> bool:
    """Return True if Inductor can split a kernel's elements into loops, as they are and when it has merged them."""
    return splits_unmerged_into(body, groups) and splits_into(body, groups)


def _groups(body: LoopBody, columns: sympy.Expr) -> list[sympy.Expr]:
    """Return the rows and columns of a kernel of a node's: its inner loops are the columns if they are as many."""
    outer, inner = body.sizes
    places = range(len(outer) - 1, -1, -1) if prod(inner) == 1 else ()
    place = next((place for place in places if are_equal(prod(outer[place:]), columns)), len(outer))
    return [sympy.factor(prod(part)) for part in (outer[:place], [*outer[place:], *inner])]


def _runs(extents: Sequence[sympy.Expr]) -> list[list[sympy.Expr]]:
    """Return loops that follow each other, in runs of which Inductor divides the product of two by each.

    >>> n, h = sympy.symbols("n h", integer=True, positive=True)
    >>> _runs([n, h, 7, h, 7])
    [[n], [h, 7, h], [7]]
    >>> _runs([n, 4, h - 1, 7])
    [[n, 4, h - 1], [7]]
    """
    runs: list[list[sympy.Expr]] = []
    for extent in map(sympy.sympify, extents):
        shared = [n for n, run in enumerate(runs) if any(_are_mixed(loop, extent) for loop in run)]
        first = min(shared, default=len(runs))
        runs[first:] = [[*(loop for run in runs[first:] for loop in run), extent]]
    return runs


def _are_mixed(one: sympy.Expr, other: sympy.Expr) -> bool:
    """Return True if two extents have a symbolic factor in common, or a sum as one, and the other a symbolic one."""
    factors, others = _factors(one), _factors(other)
    return any(factor == another or factor.is_Add or another.is_Add for factor in factors for another in others)


def _factors(extent: sympy.Expr) -> set[sympy.Expr]:
    """Return the symbolic factors of an extent, without their exponents."""
    return {base for base in sympy.sympify(extent).as_powers_dict() if not base.is_number}


def _digits_of_all(runs: Sequence[Sequence[sympy.Expr]], numbers: Sequence[sympy.Expr]) -> list[sympy.Expr]:
    """Return the iteration of each loop by those of the runs."""
    return [digit for run, number in zip(runs, numbers, strict=True) for digit in _digits(run, number)]


def _digits(run: Sequence[sympy.Expr], number: sympy.Expr) -> list[sympy.Expr]:
    """Return the iteration of each loop of a run by their number.

    >>> h, x = sympy.symbols("h x", integer=True, nonnegative=True)
    >>> _digits([h, 7], x)
    [(x//7), ModularIndexing(x, 1, 7)]
    """
    inside = [prod(run[position + 1 :]) for position in range(len(run))]
    outer = [number if len(run) == 1 else FloorDiv(number, inside[0])]
    return outer + [ModularIndexing(number, step, extent) for step, extent in zip(inside[1:], run[1:], strict=True)]
