"""Find what has to be rounded as memory would have rounded it, because a program asks if it equals something else.

The gradient of a maximum compares each element with the maximum: as it was stored. An element that one kernel stores in
16 bits and reads again is not rounded on its way, as it never leaves its register, and equals nothing. What C++ rounds
and extends again in one kernel Inductor gives as it was before: such a rounding has to be marked as one that is meant.
"""

from __future__ import annotations

from . import dtypes
from .mlir_runtime import ir, meant_rounding
from .ops_table import FLOAT_PREDICATES

_EQUALITIES = {FLOAT_PREDICATES["eq"], FLOAT_PREDICATES["ne"]}

_LOW_PRECISION = set(map(dtypes.type_name, dtypes.LOW_PRECISION))


def compared_loads(function: ir.Operation) -> frozenset[ir.Value]:
    """Return the 16-bit values loaded from what a function stores, on which an equality of computed floats depends."""
    known: set[ir.Value] = set()
    pending = [operand for comparison in _equalities(function) for operand in comparison.operands]
    while pending:
        value = pending.pop()
        if value not in known:
            known.add(value)
            pending += _sources(value)
    return frozenset(value for value in known if str(value.type) in _LOW_PRECISION and stores_where_read(value))


def mark_compared_roundings(function: ir.Operation) -> None:
    """Mark as meant the roundings of what is stored where an equality of computed floats depends on the elements.

    Those that never were in memory stay as they are: the kernel that stored the extreme left them out, too.
    """
    stores = {store for load in compared_loads(function) for store in stores_where_read(load)}
    for value in {store.operands[0] for store in stores}:
        _mark_rounding(value)


def mark_stored_roundings(memref: ir.Value) -> None:
    """Mark as meant the roundings of what is stored to a memref."""
    for value in {store.operands[0] for store in _stores_to(memref)}:
        _mark_rounding(value)


def _mark_rounding(value: ir.Value) -> None:
    """Mark the rounding to 16 bits that a value comes from; a reduction's result is read from memory by itself."""
    rounding = value.owner
    if isinstance(rounding, ir.Block) or not _rounds_float32(rounding.operation) or _is_reduced(rounding.operands[0]):
        return
    point, operands = ir.InsertionPoint(rounding), [rounding.operands[0]]
    with rounding.location:
        meant = ir.Operation.create("arith.truncf", [value.type], operands, meant_rounding(), ip=point)
    value.replace_all_uses_with(meant.result)
    rounding.operation.erase()


def _rounds_float32(operation: ir.Operation) -> bool:
    if operation.name not in ("arith.truncf", "bridge.convert"):
        return False
    return str(operation.operands[0].type) == "f32" and str(operation.results[0].type) in _LOW_PRECISION


def _is_reduced(value: ir.Value) -> bool:
    return isinstance(value.owner, ir.Block) or value.owner.name == "affine.for"


def _equalities(function: ir.Operation) -> list[ir.Operation]:
    """Return the comparisons that ask if floats are equal, but those with a constant."""
    found: list[ir.Operation] = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if operation.name == "arith.cmpf" and _asks_if_equal(operation):
            found.append(operation)
        return ir.WalkResult.ADVANCE

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _asks_if_equal(comparison: ir.Operation) -> bool:
    """Return True if a comparison asks if two floats are equal that are computed, both of them."""
    predicate = ir.IntegerAttr(comparison.attributes["predicate"]).value
    return predicate in _EQUALITIES and not any(map(_is_constant, comparison.operands))


def _is_constant(value: ir.Value) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.name == "arith.constant"


def _sources(value: ir.Value) -> list[ir.Value]:
    """Return what a value is computed from: operands, what a loop yields, what is stored where it is read."""
    if isinstance(value.owner, ir.Block):
        return []
    if value.owner.name == "affine.load":
        return [store.operands[0] for store in stores_where_read(value)]
    number = ir.OpResult(value).result_number
    blocks = [block for region in value.owner.regions for block in region.blocks]
    yielded = [list(block.operations)[-1].operands for block in blocks]
    return [*value.owner.operands, *(operands[number] for operands in yielded if number < len(operands))]


def stores_where_read(value: ir.Value) -> list[ir.Operation]:
    """Return a function's stores to the memref that a value is loaded from; none for a value of another operation."""
    if isinstance(value.owner, ir.Block) or value.owner.name != "affine.load":
        return []
    return _stores_to(value.owner.operands[0])


def _stores_to(memref: ir.Value) -> list[ir.Operation]:
    users = [use.owner.operation for use in memref.uses]
    return [user for user in users if user.name == "affine.store"]
