"""Find loops of reductions, from the stores of what they reduce."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from bridge.affine import dtypes, ops_table
from bridge.affine.mlir_runtime import defining_operation, ir

from .lanes import loops_around


def reduced_beside_lanes(stores: Iterable[ir.Operation]) -> set[ir.Operation]:
    """Return the loops whose results a band iteration stores outside of its lanes: all lanes have these."""
    found: set[ir.Operation] = set()
    for store in stores:
        if not _is_in_lanes(store):
            found |= _reductions(store.operands[0])
    return found


def reduction_loops(stores: Iterable[ir.Operation], beside: Collection[ir.Operation]) -> list[ir.Operation]:
    """Return the loops of the reduction that the stored value depends on, outermost first; empty if there is none.

    beside: what the band iteration has reduced before all lanes have; a store in lanes does not reduce it.  What code
    motion has taken out of lanes that have the same elements is none of these: each of them reduces its own.
    """
    for store in stores:
        loop = _find_reduction(store.operands[0], set(), beside if _is_in_lanes(store) else ())
        if loop is not None:
            return chain(loop)
    return []


def reduces(store: ir.Operation) -> bool:
    """Return True if the stored value depends on a reduction."""
    return _find_reduction(store.operands[0], set(), ()) is not None


def _is_in_lanes(store: ir.Operation) -> bool:
    """Return True for a store in loops of a band and in others."""
    in_band = ["bridge.band" in loop.attributes for loop in loops_around(store)]
    return any(in_band) and not all(in_band)


def _find_reduction(value: ir.Value, seen: set[ir.Value], beside: Collection[ir.Operation]) -> ir.Operation | None:
    """Return a loop that a value depends on, and that is none of `beside`; None if there is none."""
    operation = defining_operation(value)
    if operation is None or value in seen:
        return None
    seen.add(value)
    if operation.name == "affine.for":
        return None if operation in beside else operation
    for operand in operation.operands:
        found = _find_reduction(operand, seen, beside)
        if found is not None:
            return found
    return None


def _reductions(value: ir.Value) -> set[ir.Operation]:
    """Return all loops that a value depends on without one between."""
    found: set[ir.Operation] = set()
    while (loop := _find_reduction(value, set(), found)) is not None:
        found.add(loop)
    return found


def outermost_reductions(values: Iterable[ir.Value]) -> set[ir.Operation]:
    """Return all loops of reductions that values depend on, but those inside others, wherever the loops are.

    Code motion takes a reduction that no variable of the band touches out of the band.
    """
    pending, seen = list(values), set[ir.Operation]()
    while pending:
        operation = defining_operation(pending.pop())
        if operation is None or operation in seen:
            continue
        seen.add(operation)
        pending += operation.operands
        if operation.name == "affine.for":
            pending += terminator(operation).operands
    loops = {operation for operation in seen if operation.name == "affine.for"}
    return {loop for loop in loops if not any(around in loops for around in loops_around(loop))}


def waits_for_reduction(store: ir.Operation) -> bool:
    """Return True if a reduction's result is computed with to have what is stored, or the elements that are reduced."""
    value = value_before_rounding(store)
    loop = defining_operation(value)
    if loop is None or loop.name != "affine.for":
        return bool(outermost_reductions([value]))
    return any(loop not in loops_around(found) for found in outermost_reductions(terminator(loop).operands))


def value_before_rounding(store: ir.Operation) -> ir.Value:
    """Return what a store is given in Inductor's bodies, which leave it to the store to round to 16 bits.

    A rounding that is meant is done before the store.
    """
    value = store.operands[0]
    operation = defining_operation(value)
    if operation is None or operation.name != "arith.truncf" or ops_table.ROUNDING_MODE in operation.attributes:
        return value
    return operation.operands[0] if dtypes.signed_dtype(str(value.type)) in dtypes.LOW_PRECISION else value


def terminator(loop: ir.Operation) -> ir.Operation:
    """Return the yield of a loop."""
    return list(loop.regions[0].blocks[0].operations)[-1].operation


def chain(loop: ir.Operation) -> list[ir.Operation]:
    """Return a loop and the loops inside it, outermost first."""
    loops = [loop]
    while True:
        inner = [o.operation for o in loops[-1].regions[0].blocks[0].operations if o.operation.name == "affine.for"]
        if not inner:
            return loops
        loops.append(inner[0])
