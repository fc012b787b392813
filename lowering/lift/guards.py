"""Read off the fused IR which parts of a guard do not need it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from bridge.affine.integer_sets import read_integer_set
from bridge.affine.mlir_runtime import ir

#: The least and the greatest value of an index.
Range: TypeAlias = tuple[int, int]

#: What a lane may not do where its guard is off: its address is data, or it needs other lanes.
_NEEDS_GUARD = ("bridge.gather", "affine.for", "bridge.combine")

#: The constant of an expression is compared with the rest of it: where both are less than this, 32 bits are enough.
_NARROW = 1 << 30


def computes_anywhere(guard: ir.Operation) -> bool:
    """Return True if all lanes may compute what is under a guard, as soon as its loads are masked."""
    return not any(_needs_guard(operation.operation) for operation in guard.regions[0].blocks[0].operations)


def is_under(value: ir.Value, guard: ir.Operation) -> bool:
    """Return True if a value is computed in a region of a guard."""
    operation = value.owner.owner if isinstance(value.owner, ir.Block) else value.owner
    while operation is not None and operation != guard:
        operation = operation.operation.parent
    return operation is not None and value not in list(guard.results)


def is_narrow(guard: ir.Operation) -> bool:
    """Return True if 32 bits hold what a guard compares, in all iterations of its loops."""
    integer_set, _ = read_integer_set(guard.attributes["condition"])
    ranges = _ranges(integer_set, [_range_of(operand) for operand in guard.operands])
    return all(found is not None and -_NARROW < found[0] and found[1] < _NARROW for found in ranges)


def is_always_inside(load: ir.Operation) -> bool:
    """Return True if a load is inside its memref in all iterations of its loops, those without its guards included."""
    ranges = _ranges(load.attributes["map"].value, [_range_of(operand) for operand in list(load.operands)[1:]])
    memref = ir.MemRefType(load.operands[0].type)
    return memref.has_static_shape and all(map(_fits, ranges, memref.shape))


def _needs_guard(operation: ir.Operation) -> bool:
    if operation.name == "affine.if":
        return not computes_anywhere(operation)
    return operation.name in _NEEDS_GUARD


def _fits(found: Range | None, extent: int) -> bool:
    return found is not None and 0 <= found[0] and found[1] < extent


def _range_of(value: ir.Value) -> Range | None:
    """Return the range of a loop's variable or of what a map makes of some; None for any other value."""
    if isinstance(value.owner, ir.Block):
        return _range_of_variable(value)
    operation = value.owner.operation
    if operation.name != "affine.apply":
        return None
    return _ranges(operation.attributes["map"].value, [_range_of(operand) for operand in operation.operands])[0]


def _range_of_variable(variable: ir.Value) -> Range | None:
    """Return the range of a loop's variable, None if its bounds are symbolic, or it is no loop's."""
    loop = variable.owner.owner.operation
    if loop.name != "affine.for" or variable != loop.regions[0].blocks[0].arguments[0]:
        return None
    lower, upper = (list(loop.attributes[name].value.results) for name in ("lowerBoundMap", "upperBoundMap"))
    if len(lower) != 1 or len(upper) != 1 or not all(isinstance(b, ir.AffineConstantExpr) for b in (*lower, *upper)):
        return None
    return lower[0].value, upper[0].value - 1


def _ranges(affine_map: ir.AffineMap, operands: Sequence[Range | None]) -> list[Range | None]:
    """Return the range of each result of a map, from those of its operands."""
    dims, symbols = operands[: affine_map.n_dims], operands[affine_map.n_dims :]
    return [_range(result, dims, symbols) for result in affine_map.results]


def _range(expr: ir.AffineExpr, dims: Sequence[Range | None], symbols: Sequence[Range | None]) -> Range | None:
    """Return the range of an affine expression, from those of its dimensions and symbols; None if it is not known."""
    if isinstance(expr, ir.AffineConstantExpr):
        return expr.value, expr.value
    if isinstance(expr, ir.AffineDimExpr):
        return dims[expr.position]
    if isinstance(expr, ir.AffineSymbolExpr):
        return symbols[expr.position]
    left, right = (_range(side, dims, symbols) for side in (expr.lhs, expr.rhs))
    if left is None and right is not None and isinstance(expr, ir.AffineModExpr):
        return 0, right[1] - 1
    return None if left is None or right is None else _combined(expr, left, right)


def _combined(expr: ir.AffineExpr, left: Range, right: Range) -> Range | None:
    """Return the range of a binary expression; the right side of a product, quotient or remainder is a constant."""
    if isinstance(expr, ir.AffineAddExpr):
        return left[0] + right[0], left[1] + right[1]
    constant = right[0]
    if isinstance(expr, ir.AffineMulExpr):
        ends = left[0] * constant, left[1] * constant
        return (min(ends), max(ends)) if right[0] == right[1] else None
    if isinstance(expr, ir.AffineFloorDivExpr) and constant > 0:
        return left[0] // constant, left[1] // constant
    if isinstance(expr, ir.AffineModExpr) and constant > 0:
        same = left[0] // constant == left[1] // constant
        return (left[0] % constant, left[1] % constant) if same else (0, constant - 1)
    return None
