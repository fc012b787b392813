"""Affine maps, sets and relations of isl, made from MLIR's affine expressions by islpy's constructors.

Every variable (a size, an induction variable, a subscript) is a named parameter of isl's.  A relation is made last:
it names the parameters that become its inputs and its outputs, and what is left over exists.

islpy is the optional dependency `recheck`; this file is imported only where that option is on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import TypeAlias

import islpy as isl

from ..reasons import InvariantError
from .integer_sets import read_integer_set
from .mlir_runtime import ir

#: An affine expression of named parameters, and a condition on them.
Expression: TypeAlias = isl.PwAff
Condition: TypeAlias = isl.Set


def _parameters(names: Sequence[str]) -> isl.Space:
    """Return the space of parameters with these names."""
    space = isl.Space.params_alloc(isl.DEFAULT_CONTEXT, len(names))
    for position, name in enumerate(names):
        space = space.set_dim_name(isl.dim_type.param, position, name)
    return space


_ALL = isl.Set.universe(_parameters([]))


def variable(name: str) -> Expression:
    """Return the variable of that name."""
    return isl.PwAff.var_on_domain(isl.LocalSpace.from_space(_parameters([name])), isl.dim_type.param, 0)


def constant(value: int) -> Expression:
    """Return a number as an expression."""
    return isl.PwAff.val_on_domain(_ALL, isl.Val(value))


def apply_map(affine_map: ir.AffineMap, operands: Sequence[Expression]) -> list[Expression]:
    """Return the results of a map on operands: dimensions first, then symbols."""
    dims, symbols = operands[: affine_map.n_dims], operands[affine_map.n_dims :]
    return [convert(result, dims, symbols) for result in affine_map.results]


def apply_set(attribute: ir.Attribute, operands: Sequence[Expression]) -> Condition:
    """Return the condition that the operands are in an `affine_set`."""
    affine_map, are_equalities = read_integer_set(attribute)
    values = apply_map(affine_map, operands)
    pairs = zip(values, are_equalities, strict=True)
    return conjunction(value.zero_set() if is_equality else value.nonneg_set() for value, is_equality in pairs)


def conjunction(conditions: Iterable[Condition]) -> Condition:
    """Return the condition that all conditions hold."""
    return reduce(isl.Set.intersect, conditions, _ALL)


def convert(expr: ir.AffineExpr, dims: Sequence[Expression], symbols: Sequence[Expression]) -> Expression:
    """Return an MLIR affine expression with its dimensions and symbols replaced.

    Raises isl.Error for a product of two variables and a division by one.
    """
    if isinstance(expr, ir.AffineConstantExpr):
        return constant(expr.value)
    if isinstance(expr, ir.AffineDimExpr):
        return dims[expr.position]
    if isinstance(expr, ir.AffineSymbolExpr):
        return symbols[expr.position]
    return _binary(expr, convert(expr.lhs, dims, symbols), convert(expr.rhs, dims, symbols))


def _binary(expr: ir.AffineExpr, left: Expression, right: Expression) -> Expression:
    """Return the operation of a binary affine expression on its converted operands."""
    if isinstance(expr, ir.AffineAddExpr):
        return left.add(right)
    if isinstance(expr, ir.AffineMulExpr):
        return left.mul(right)
    if isinstance(expr, ir.AffineFloorDivExpr):
        return left.div(right).floor()
    if isinstance(expr, ir.AffineCeilDivExpr):
        return left.div(right).ceil()
    if isinstance(expr, ir.AffineModExpr):
        return left.sub(right.mul(left.div(right).floor()))
    raise InvariantError(f"no affine expression: {expr}")


def make_relation(condition: Condition, sizes: Sequence[str], inputs: Sequence[str], outputs: Sequence[str]) -> isl.Map:
    """Return the relation of the variables `inputs` to the variables `outputs` under a condition.

    sizes: the variables that stay parameters; every other variable of the condition exists.
    """
    names = [*sizes, *inputs, *outputs]
    parameter = isl.dim_type.param
    aligned = condition.align_params(_parameters(names))  # these variables first, all others after them
    kept = aligned.project_out(parameter, len(names), aligned.dim(parameter) - len(names))
    relation = isl.Map.from_range(kept.from_params())
    for kind, own in ((isl.dim_type.in_, inputs), (isl.dim_type.out, outputs)):
        relation = relation.move_dims(kind, 0, parameter, len(sizes), len(own))
    return relation
