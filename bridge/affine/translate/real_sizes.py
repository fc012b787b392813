"""Numbers that are computed of sizes and are no integers: no map has them.

The gradient of a standard deviation of `s` elements has `2 / (s - 1)`.  Such a number is computed of sizes by the
operations on float64, as Inductor's code does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TypeVar

import sympy
from torch.utils._sympy import functions

from ...reasons import Reason, Unsupported

Value = TypeVar("Value")

#: sympy's classes and torch's, with the operation of the loop IR.
_OPERATIONS = {
    sympy.Add: "add",
    sympy.Mul: "mul",
    functions.FloatTrueDiv: "truediv",
    functions.IntTrueDiv: "truediv",
    functions.FloatPow: "pow",
    functions.OpaqueUnaryFn_sqrt: "sqrt",
}


def is_real(expr: sympy.Expr) -> bool:
    """Return True if an expression is computed of sizes by functions whose results are no integers."""
    return expr.has(functions.ToFloat, *_OPERATIONS.keys() - {sympy.Add, sympy.Mul})


def compute_real(
    expr: sympy.Expr,
    integer: Callable[[sympy.Expr], Value],
    number: Callable[[float], Value],
    operation: Callable[[str, Sequence[Value]], Value],
) -> Value:
    """Return the value of an expression; Unsupported(non_affine_index) where other than these operations are needed.

    integer, number: give the value of an integer expression, and of a number, as a float; operation: of the name of an
    operation and its operands.
    """
    if expr.is_Float:
        return number(float(expr))
    if isinstance(expr, functions.ToFloat):
        return integer(expr.args[0])
    if expr.is_integer:
        return integer(expr)
    name = _OPERATIONS.get(expr.func)
    if name is None:
        raise Unsupported(Reason.non_affine_index, f"{expr} is no integer")
    operands = [compute_real(part, integer, number, operation) for part in expr.args]
    if len(operands) == 1:
        return operation(name, operands)
    return functools.reduce(lambda one, other: operation(name, (one, other)), operands)
