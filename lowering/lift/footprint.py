"""What one band iteration of a fused nest keeps, read off the affine IR."""

from __future__ import annotations

from collections.abc import Iterable

from bridge.affine import dtypes
from bridge.affine.mlir_runtime import ir


def row_registers(reductions: Iterable[ir.Operation]) -> int | None:
    """Return how many 32-bit registers hold every element which the reductions of one band iteration load.

    reductions: the outermost loops that carry values.  An element that several loops load counts once.
    Block sizes are powers of two, so the inner extents are rounded up.  None where an inner extent is symbolic,
    0 where there is no reduction.
    """
    loads: dict[tuple[ir.Value, str], int] = {}
    for loop in reductions:
        iterations = _volume(loop)
        if iterations is None:
            return None
        iterations *= _segments(loop)
        for load in _inner_loads(loop):
            element = ir.MemRefType(load.operands[0].type).element_type
            loads[_key(load)] = iterations * dtypes.signed_dtype(str(element)).itemsize * 8
    return sum(loads.values()) // 32


def _volume(loop: ir.Operation) -> int | None:
    """Return the product of the extents of a loop and those inside it, each rounded up to a power of two."""
    upper = loop.attributes["upperBoundMap"].value.results[0]
    if not isinstance(upper, ir.AffineConstantExpr):
        return None
    volume = 1 << (upper.value - 1).bit_length()
    for operation in loop.regions[0].blocks[0].operations:
        if operation.operation.name == "affine.for":
            inner = _volume(operation.operation)
            return None if inner is None else volume * inner
    return volume


def _segments(loop: ir.Operation) -> int:
    """Return how many segments of a row a reduction inside lanes is over."""
    count, parent = 1, loop.parent.operation
    while parent.name == "affine.for" and "bridge.band" not in parent.attributes:
        count *= parent.attributes["upperBoundMap"].value.results[0].value
        parent = parent.parent.operation
    return count


def _inner_loads(loop: ir.Operation) -> list[ir.Operation]:
    """Return the loads inside a loop whose subscripts depend on the loops of the reduction."""
    found: list[ir.Operation] = []
    variables: set[ir.Value] = {loop.regions[0].blocks[0].arguments[0]}

    def visit(operation: ir.Operation) -> ir.WalkResult:
        """Keep a load that uses a variable of the loops."""
        if operation.name == "affine.for":
            variables.add(operation.operation.regions[0].blocks[0].arguments[0])
        if operation.name == "affine.load" and variables & set(list(operation.operands)[1:]):
            found.append(operation.operation)
        return ir.WalkResult.ADVANCE

    loop.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _key(load: ir.Operation) -> tuple[ir.Value, str]:
    """Return the memref and the map: where both are equal and the loops the same, so are the elements."""
    return load.operands[0], str(load.attributes["map"])
