"""Merge loops whose product is a power of a symbol: Inductor divides `n*h**2` by `n`, but not `h**2` by `h`.

Images with as many lines as columns have such loops where both are one symbol.  Inductor splits the elements of a
kernel of Triton's into the loops of each node, from the outermost one on.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import sympy
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

from .loops import remake_loop_body
from .protocols import LoopBody
from .tiles import splits_into


def with_loops_to_split(body: LoopBody) -> LoopBody:
    """Return a LoopBody whose loops Inductor can split a kernel's elements into, if loops without powers are such.

    The body itself where it can, or where no loops share a symbol.
    """
    runs = [_runs(part) for part in body.sizes]
    if all(len(own) == len(part) for own, part in zip(runs, body.sizes, strict=True)) or _is_split(body):
        return body

    def run(*indices: Sequence[sympy.Expr]) -> None:
        body(*(_digits_of_all(own, part) for own, part in zip(runs, indices, strict=True)))

    merged = remake_loop_body(run, *([prod(run) for run in own] for own in runs))
    return merged if _is_split(merged) else body


def _is_split(body: LoopBody) -> bool:
    return splits_into(body, [sympy.factor(prod(part)) for part in body.sizes])


def _runs(extents: Sequence[sympy.Expr]) -> list[list[sympy.Expr]]:
    """Return loops that follow each other, in runs of which no two have a symbolic factor in common.

    >>> n, h = sympy.symbols("n h", integer=True, positive=True)
    >>> _runs([n, h, 7, h, 7])
    [[n], [h, 7, h], [7]]
    """
    runs: list[list[sympy.Expr]] = []
    for extent in map(sympy.sympify, extents):
        shared = [n for n, run in enumerate(runs) if _factors(prod(run)) & _factors(extent)]
        first = min(shared, default=len(runs))
        runs[first:] = [[*(loop for run in runs[first:] for loop in run), extent]]
    return runs


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
