"""Affine maps and integer sets of the fused IR as sympy expressions."""

from __future__ import annotations

import sympy
from torch.utils._sympy.functions import CeilDiv, FloorDiv, ModularIndexing

from bridge.mlir_runtime import ir
from bridge.reasons import Reason, Unsupported


def to_sympy(expr, dims: list[sympy.Expr], symbols: list[sympy.Expr]) -> sympy.Expr:
    """An MLIR affine expression with its dimensions and symbols replaced."""
    if isinstance(expr, ir.AffineConstantExpr):
        return sympy.Integer(expr.value)
    if isinstance(expr, ir.AffineDimExpr):
        return dims[expr.position]
    if isinstance(expr, ir.AffineSymbolExpr):
        return symbols[expr.position]
    return _binary(expr, to_sympy(expr.lhs, dims, symbols), to_sympy(expr.rhs, dims, symbols))


def _binary(expr, left: sympy.Expr, right: sympy.Expr) -> sympy.Expr:
    if isinstance(expr, ir.AffineAddExpr):
        return left + right
    if isinstance(expr, ir.AffineMulExpr):
        return left * right
    if isinstance(expr, ir.AffineFloorDivExpr):
        return FloorDiv(left, right)
    if isinstance(expr, ir.AffineCeilDivExpr):
        return CeilDiv(left, right)
    if isinstance(expr, ir.AffineModExpr):
        return ModularIndexing(left, sympy.Integer(1), right)
    raise Unsupported(Reason.not_liftable, f"affine expression {expr}")


def apply_map(affine_map, operands: list[sympy.Expr]) -> list[sympy.Expr]:
    """The results of a map on operands given as sympy expressions: dimensions first, then symbols."""
    dims, symbols = operands[: affine_map.n_dims], operands[affine_map.n_dims :]
    return [to_sympy(result, dims, symbols) for result in affine_map.results]


def constraints(integer_set, operands: list[sympy.Expr]) -> list[tuple[sympy.Expr, bool]]:
    """The constraints of a set: (expression, True for `== 0` / False for `>= 0`)."""
    found = list(integer_set.constraints)
    # A set gives its expressions untyped; a map made of them gives them typed.
    typed = ir.AffineMap.get(integer_set.n_dims, integer_set.n_symbols, [c.expr for c in found])
    return [(e, c.is_eq) for e, c in zip(apply_map(typed, operands), found, strict=True)]
