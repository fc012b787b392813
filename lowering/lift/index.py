"""Affine maps and integer sets of the fused IR as sympy expressions."""

from __future__ import annotations

import sympy
from torch.utils._sympy.functions import CeilDiv, FloorDiv, ModularIndexing

from bridge.affine.integer_sets import read_integer_set
from bridge.affine.mlir_runtime import ir
from bridge.reasons import Reason, Unsupported


def to_sympy(expr: ir.AffineExpr, dims: list[sympy.Expr], symbols: list[sympy.Expr]) -> sympy.Expr:
    """Return an MLIR affine expression with its dimensions and symbols replaced."""
    if isinstance(expr, ir.AffineConstantExpr):
        return sympy.Integer(expr.value)
    if isinstance(expr, ir.AffineDimExpr):
        return dims[expr.position]
    if isinstance(expr, ir.AffineSymbolExpr):
        return symbols[expr.position]
    return _binary(expr, to_sympy(expr.lhs, dims, symbols), to_sympy(expr.rhs, dims, symbols))


def _binary(expr: ir.AffineExpr, left: sympy.Expr, right: sympy.Expr) -> sympy.Expr:
    """Return the operation of a binary affine expression on its operands."""
    if isinstance(expr, ir.AffineAddExpr):
        return left + right
    if isinstance(expr, ir.AffineMulExpr):
        return left * right
    if isinstance(expr, ir.AffineFloorDivExpr):
        return FloorDiv(left, right)
    if isinstance(expr, ir.AffineCeilDivExpr):
        return CeilDiv(left, right)
    if isinstance(expr, ir.AffineModExpr):
        return _modulo(left, right)
    raise Unsupported(Reason.not_liftable, f"affine expression {expr}")


def _modulo(dividend: sympy.Expr, divisor: sympy.Expr) -> sympy.Expr:
    """Return the remainder with the divisor's sign, as MLIR's; code for a `ModularIndexing` gives the dividend's."""
    if may_be_negative(dividend):
        return dividend - divisor * FloorDiv(dividend, divisor)
    return ModularIndexing(dividend, sympy.Integer(1), divisor)


def may_be_negative(expr: sympy.Expr) -> bool:
    """Return True if a sum, or an operand of a division in it, has a negative term; variables are not negative."""
    if any(may_be_negative(atom.args[0]) for atom in expr.atoms(FloorDiv, CeilDiv, ModularIndexing)):
        return True
    return any(term.as_coeff_Mul()[0].is_negative for term in sympy.Add.make_args(sympy.expand(expr)))


def apply_map(affine_map: ir.AffineMap, operands: list[sympy.Expr]) -> list[sympy.Expr]:
    """Return the results of a map on operands given as sympy expressions: dimensions first, then symbols."""
    dims, symbols = operands[: affine_map.n_dims], operands[affine_map.n_dims :]
    return [with_modulo(to_sympy(result, dims, symbols)) for result in affine_map.results]


def with_modulo(expr: sympy.Expr) -> sympy.Expr:
    """Write `x mod d` for `x - d * (x floordiv d)`, which MLIR makes of it: Inductor knows the shorter form."""
    if not expr.is_Add or not expr.has(FloorDiv):
        return expr
    for term in expr.args:
        coefficient, atom = term.as_coeff_Mul()
        if not isinstance(atom, FloorDiv) or not (coefficient / atom.args[1]).is_Integer:
            continue
        base, divisor = atom.args
        if may_be_negative(base):
            continue
        factor = -coefficient / divisor
        shorter = sympy.expand(expr - term - factor * base) + factor * ModularIndexing(base, sympy.Integer(1), divisor)
        if len(sympy.Add.make_args(shorter)) < len(expr.args):
            return with_modulo(shorter)
    return expr


def constraints(integer_set: ir.Attribute, operands: list[sympy.Expr]) -> list[tuple[sympy.Expr, bool]]:
    """Return the constraints of an `affine_set` attribute: (expression, True for `== 0` / False for `>= 0`)."""
    affine_map, are_equalities = read_integer_set(integer_set)
    return list(zip(apply_map(affine_map, operands), are_equalities, strict=True))
