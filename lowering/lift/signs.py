"""Find the integers of the IR that are unsigned.

MLIR's integers are signless.  Where upstream folds an unsigned value to a constant (`x - x` is 0), nothing at the
constant says that it is unsigned; what it is used with does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch

from bridge.affine import dtypes
from bridge.affine.mlir_runtime import ir

#: The dtype of the elements of a memref.
ElementDtype = Callable[[ir.Value], torch.dtype]

_READS = ("affine.load", "bridge.gather")


def unsigned_beside(value: ir.Value, operation: ir.Operation, element: ElementDtype) -> torch.dtype | None:
    """Return the unsigned dtype that a constant operand has, from the operation's others; None for any other value."""
    if not is_integer_constant(value):
        return None
    others = [o for o in operation.operands if o.type == value.type and not is_integer_constant(o)]
    return unsigned_dtype(others, element)


def is_integer_constant(value: ir.Value) -> bool:
    """Return True for an `arith.constant` of an integer that is no flag and no index."""
    owner = value.owner
    is_constant = not isinstance(owner, ir.Block) and owner.name == "arith.constant"
    return is_constant and isinstance(value.type, ir.IntegerType) and value.type.width > 1


def unsigned_dtype(values: Iterable[ir.Value], element: ElementDtype) -> torch.dtype | None:
    """Return the unsigned dtype that values were translated from, if one; operations keep that of their operands.

    Each value is looked at once: in a hash of integers every value is there twice.
    """
    waiting, seen = list(values), set[ir.Value]()
    while waiting:
        value = waiting.pop()
        if value in seen or isinstance(value.owner, ir.Block):
            continue
        seen.add(value)
        operation = value.owner
        if operation.name == "bridge.convert":
            dtype = dtypes.dtype_from_name(ir.StringAttr(operation.attributes["to"]).value)
        elif operation.name in _READS:
            dtype = element(operation.operands[0])
        else:
            waiting += _operands_alike(operation, value)
            continue
        if dtype in dtypes.UNSIGNED:
            return dtype
    return None


def _operands_alike(operation: ir.Operation, result: ir.Value) -> list[ir.Value]:
    """Return the values of a result's own type that it is made of; of a guard, what its regions yield."""
    if operation.name != "affine.if":
        return [operand for operand in operation.operands if operand.type == result.type]
    position = list(operation.results).index(result)
    return [list(region.blocks[0].operations)[-1].operands[position] for region in operation.regions]
