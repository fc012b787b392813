"""Indices that are the larger or the smaller of two, or without their sign: no affine map has them.

Inductor writes the distances of tokens so, `max(0, i - j)` or `abs(i - j)`.  As a number such an index is computed of
affine ones by the operations on integers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TypeVar

import sympy
from torch.utils._sympy import functions

from ...reasons import Reason, Unsupported
from .access import Ranges, bounds, expand, is_iteration_atom

Value = TypeVar("Value")

#: sympy's classes and those that torch has in their place, with the operation of the loop IR.
_PIECES = {
    **dict.fromkeys((sympy.Max, functions.Max), "maximum"),
    **dict.fromkeys((sympy.Min, functions.Min), "minimum"),
    sympy.Abs: "abs",
}

_OPERATIONS = {**_PIECES, sympy.Add: "add", sympy.Mul: "mul"}


def is_piecewise(expr: sympy.Expr) -> bool:
    """Return True if a larger or smaller of two, or an absolute value, varies with the iteration."""
    return any(map(is_iteration_atom, expr.atoms(*_PIECES)))


def compute_piecewise(
    expr: sympy.Expr, index: Callable[[sympy.Expr], Value], operation: Callable[[str, Sequence[Value]], Value]
) -> Value:
    """Return the value of an index; Unsupported(non_affine_index) where other than these operations would be needed.

    index: gives the value of a part that is none of these; operation: of the name of an operation and its operands.
    """
    if not is_piecewise(expr):
        return index(_whole(expr))
    name = _OPERATIONS.get(expr.func)
    if name is None:
        raise Unsupported(Reason.non_affine_index, f"{expr} is not affine in the iteration variables")
    parts = [compute_piecewise(part, index, operation) for part in _parts(expr)]
    if len(parts) == 1:
        return operation(name, parts)
    return functools.reduce(lambda one, other: operation(name, (one, other)), parts)


def without_decided(expr: sympy.Expr, ranges: Ranges, known: Callable[[sympy.Basic], bool]) -> sympy.Expr:
    """Return an index without the larger or the smaller of two where one of them is so in every iteration.

    Of windows that do not overlap, as those of whose averages the gradient is taken, each element is in one:
    `min(i, min(128, i + 1) - 1)` is `i` for `i < 128`.
    """

    def at_least(one: sympy.Expr, other: sympy.Expr) -> bool:
        """Return True if the one is known to be never less than the other."""
        difference = expand(one - other)
        span = bounds(difference, ranges) if not is_piecewise(difference) else None
        return span is not None and (bool(span[0] >= 0) if span[0].is_Integer else known(sympy.Ge(span[0], 0)))

    def decided(extreme: sympy.Expr) -> sympy.Expr:
        """Return an extreme of those arguments of which none is known to decide it."""
        largest, left = _PIECES[extreme.func] == "maximum", list(extreme.args)
        for argument in extreme.args:
            others = (other for other in left if other is not argument)
            if any(at_least(other, argument) if largest else at_least(argument, other) for other in others):
                left.remove(argument)
        return extreme.func(*left)

    if not is_piecewise(expr):
        return expr
    extremes = tuple(kind for kind, operation in _PIECES.items() if operation != "abs")
    return expr.replace(lambda part: isinstance(part, extremes) and is_iteration_atom(part), decided)


def _parts(expr: sympy.Expr) -> list[sympy.Expr]:
    """Return the operands; those of a sum or product that are affine as one."""
    if expr.func not in (sympy.Add, sympy.Mul):
        return list(expr.args)
    affine = [part for part in expr.args if not is_piecewise(part)]
    return [*([expr.func(*affine)] if affine else []), *filter(is_piecewise, expr.args)]


def _whole(expr: sympy.Expr) -> sympy.Expr:
    """Return an index with integers in the place of floats such as 0.0; Unsupported(non_affine_index) for others."""
    floats = expr.atoms(sympy.Float)
    if not all(float(number).is_integer() for number in floats):
        raise Unsupported(Reason.non_affine_index, f"{expr} is no integer")
    return expr.xreplace({number: sympy.Integer(int(number)) for number in floats})
