"""Read off the affine IR what one band iteration of a fused nest keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from bridge.affine import dtypes
from bridge.affine.mlir_runtime import defining_operation, ir

from ..triton.profitability import MAX_ROW_REGISTERS, power_of_2
from .broadcasts import depends_on
from .lanes import constant_extent, loops_around
from .reduction_loops import outermost_reductions, terminator
from .reductions import combine_kind


def row_registers(reductions: Iterable[ir.Operation], shared: bool = True) -> int | None:
    """Return how many 32-bit registers hold every element which the reductions of one band iteration load.

    reductions: the outermost loops that carry values; shared: also what all iterations of the band load, as parameters
    of columns are.  An element that several loops load counts once.
    Block sizes are powers of two, so the inner extents are rounded up.  None where an inner extent is symbolic,
    0 where there is no reduction.  What is loaded in 16 bits is computed in 32: a row of more lanes than a block has
    registers for counts as many registers as lanes.
    """
    loads: dict[tuple[ir.Value, str], int] = {}
    longest = 0
    for loop in reductions:
        volume, segments = _volume(loop), _segments(loop)
        if volume is None or segments is None:
            return None
        iterations = volume * segments
        longest = max(longest, iterations)
        for load, key in _inner_loads(loop) if shared else _own_loads(loop):
            element = ir.MemRefType(load.operands[0].type).element_type
            loads[load.operands[0], key] = iterations * dtypes.signed_dtype(str(element)).itemsize * 8
    return max(sum(loads.values()) // 32, longest if longest > MAX_ROW_REGISTERS else 0)


def lane_combinations(band: ir.Operation) -> list[ir.Operation]:
    """Return each `bridge.combine` of a band with which a lane begins to combine by itself: with no loop's state."""
    found: list[ir.Operation] = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        """Keep a combination that begins with neither a loop's state nor another combination, in a loop of lanes."""
        if operation.name == "bridge.combine":
            owner = operation.operands[0].owner
            begins = not isinstance(owner, ir.Block) and owner.name != "bridge.combine"
            if begins and "bridge.band" not in loop_around(operation.operation).attributes:
                found.append(operation.operation)
        return ir.WalkResult.ADVANCE

    band.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def keeps_elements(combination: ir.Operation) -> bool:
    """Return True if all elements are needed at a time, as for a mean and then the squares; not for an extremum."""
    return combine_kind(combination) in ("welford", "online_softmax")


def spread_loops(band: ir.Operation) -> list[ir.Operation]:
    """Return the loops of a band's lanes that store several elements of a buffer each, which what reads them keeps."""
    places: Counter[tuple[ir.Operation, ir.Value]] = Counter()

    def visit(operation: ir.Operation) -> ir.WalkResult:
        """Count a store in a loop of lanes."""
        if operation.name == "affine.store" and "bridge.band" not in loop_around(operation.operation).attributes:
            places[loop_around(operation.operation), operation.operands[1]] += 1
        return ir.WalkResult.ADVANCE

    band.walk(visit, ir.WalkOrder.PRE_ORDER)
    return [loop for (loop, _), count in places.items() if count > 1]


def goes_once(band: ir.Operation) -> bool:
    """Return True if no lane of a band, and nothing that it reduces, waits for what it has reduced from its row.

    A loop over the row then reads it once, and does not have to keep it.
    """
    stores: list[ir.Operation] = []
    loads: list[ir.Operation] = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        """Keep the accesses."""
        if operation.name in ("affine.store", "affine.load"):
            (stores if operation.name == "affine.store" else loads).append(operation.operation)
        return ir.WalkResult.ADVANCE

    band.walk(visit, ir.WalkOrder.PRE_ORDER)
    reducing = outermost_reductions(store.operands[0] for store in stores)
    results = {result for loop in reducing for result in loop.results}
    kept = {store.operands[1] for store in stores if depends_on(store.operands[0], results)}
    late = results | {load.results[0] for load in loads if load.operands[0] in kept}
    in_lanes = [store for store in stores if "bridge.band" not in loop_around(store).attributes]
    values = [
        *(store.operands[0] for store in in_lanes),
        *(value for loop in reducing for value in terminator(loop).operands),
    ]
    return not any(depends_on(value, late) for value in values)


def loop_around(operation: ir.Operation) -> ir.Operation:
    """Return the innermost loop around an operation of a band."""
    parent = operation.parent.operation
    while parent.name != "affine.for":
        parent = parent.parent.operation
    return parent


def _volume(loop: ir.Operation) -> int | None:
    """Return the product of the extents of a loop and those inside it, each rounded up to a power of two."""
    extent = constant_extent(loop)
    if extent is None:
        return None
    volume = power_of_2(extent)
    for operation in loop.regions[0].blocks[0].operations:
        if operation.operation.name == "affine.for":
            inner = _volume(operation.operation)
            return None if inner is None else volume * inner
    return volume


def _segments(loop: ir.Operation) -> int | None:
    """Return how many segments of a row a reduction inside lanes is over; None where their number is symbolic."""
    count, parent = 1, loop.parent.operation
    while parent.name == "affine.for" and "bridge.band" not in parent.attributes:
        extent = constant_extent(parent)
        if extent is None:
            return None
        count *= extent
        parent = parent.parent.operation
    return count


def _own_loads(loop: ir.Operation) -> list[tuple[ir.Operation, str]]:
    """Return those of `_inner_loads` that load other elements in other iterations of the band."""
    around = [one for one in loops_around(loop) if "bridge.band" in one.attributes]
    rows = {one.regions[0].blocks[0].arguments[0] for one in around}
    found = _inner_loads(loop)
    return [(load, key) for load, key in found if any(depends_on(place, rows) for place in list(load.operands)[1:])]


def _inner_loads(loop: ir.Operation) -> list[tuple[ir.Operation, str]]:
    """Return (load, which element it is) for the loads inside a loop that depend on the loops of the reduction.

    Where two loads of a memref say the same and the loops are the same, so are the elements.
    """
    found: list[tuple[ir.Operation, str]] = []
    variables: dict[ir.Value, str] = {loop.regions[0].blocks[0].arguments[0]: "v0"}

    def visit(operation: ir.Operation) -> ir.WalkResult:
        """Keep a load that uses a variable of the loops."""
        if operation.name == "affine.for":
            variables.setdefault(operation.operation.regions[0].blocks[0].arguments[0], f"v{len(variables)}")
        if operation.name == "affine.load" and variables.keys() & set(list(operation.operands)[1:]):
            found.append((operation.operation, str(operation.attributes["map"])))
        if operation.name == "bridge.gather":
            place, varies = _place(operation.operation, variables)
            found.extend([(operation.operation, place)] if varies else [])
        return ir.WalkResult.ADVANCE

    loop.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _place(operation: ir.Operation, variables: dict[ir.Value, str]) -> tuple[str, bool]:
    """Return (how an operation computes its result, whether from variables of the loops)."""
    origins = [_origin(operand, variables) for operand in operation.operands]
    attributes = [f"{name} = {operation.attributes[name]}" for name in operation.attributes]
    text = f"{operation.name} {attributes} ({', '.join(text for text, _ in origins)})"
    return text, any(varies for _, varies in origins)


def _origin(value: ir.Value, variables: dict[ir.Value, str]) -> tuple[str, bool]:
    """Return (how a value is computed, whether from variables of the loops)."""
    if value in variables:
        return variables[value], True
    operation = defining_operation(value)
    return (value.get_name(), False) if operation is None else _place(operation, variables)
