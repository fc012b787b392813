"""Lift what the passes made of a function: each of its bands by itself."""

from __future__ import annotations

from contextlib import nullcontext

from bridge.affine.equalities import compared_loads, stores_where_read
from bridge.affine.mlir_runtime import ir
from bridge.affine.ops_table import ROUNDING_MODE
from bridge.support.error_boundary import Note, attempt

from .band import FunctionTables, LiftedBand, lift_band
from .lanes import loops_around


def lift_function(
    function: ir.Operation, tables: FunctionTables, stores_of: dict[str, set[str]], refuse: Note | None = None
) -> list[LiftedBand]:
    """Lift every band of several nodes in a function.

    stores_of: the buffers that each node writes; refuse: is told why a band has no lift, and the others are lifted.
    Without it, Unsupported.
    """
    entry = function.regions[0].blocks[0]
    roots = [op.operation for op in entry.operations if op.operation.name == "affine.for"]
    # A band loop that names no nodes is what code motion took out of a band.
    bands = [root for root in roots if "bridge.band" in root.attributes and "bridge.nodes" in root.attributes]
    compared = compared_loads(function) if bands else frozenset()
    lifted = []
    for root in bands:
        with nullcontext() if refuse is None else attempt(note=refuse):
            rounded = compared | loads_read_again(root, entry, tables)
            rounded |= loads_rounded_again(root, entry, tables, stores_of)
            lifted.append(lift_band(root, entry, tables, stores_of, rounded))
    return lifted


def loads_read_again(root: ir.Operation, entry: ir.Block, tables: FunctionTables) -> frozenset[ir.Value]:
    """Return what a band loads of what it stores, and another kernel reads together with what the band makes of it."""
    kernels = set(_kernels(root))
    again = {name for name, readers in tables.read_again.items() if readers - kernels}
    return _own_loads(root, entry, tables, again)


def loads_rounded_again(
    root: ir.Operation, entry: ir.Block, tables: FunctionTables, stores_of: dict[str, set[str]]
) -> frozenset[ir.Value]:
    """Return what a band loads of what another of its kernels stores, where lanes compute such values again, rounded.

    What a kernel reads of its own stores is exact, as Inductor has it.
    """
    if not _rounds_what_is_not_stored(root):
        return frozenset()
    nodes = [ir.StringAttr(name).value for name in ir.ArrayAttr(root.attributes["bridge.nodes"])]
    stored, loaded = set[tuple[int, str]](), set[tuple[int, str]]()
    for kernel, node in zip(_kernels(root), nodes, strict=True):
        stored |= {(kernel, buffer) for buffer in stores_of[node]}
        loaded |= {(kernel, buffer) for buffer in tables.loads_of.get(node, ())}
    return _own_loads(root, entry, tables, {buffer for _, buffer in stored} - {buffer for _, buffer in stored & loaded})


def _kernels(root: ir.Operation) -> list[int]:
    return [ir.IntegerAttr(kernel).value for kernel in ir.ArrayAttr(root.attributes["bridge.kernels"])]


def _own_loads(root: ir.Operation, entry: ir.Block, tables: FunctionTables, names: set[str]) -> frozenset[ir.Value]:
    """Return the values that a band loads of buffers that it stores, of those with these names."""
    memrefs = [memref for memref, (name, _) in zip(entry.arguments, tables.buffers, strict=False) if name in names]
    users = [use.owner.operation for memref in memrefs for use in memref.uses]
    own = [user.results[0] for user in users if user.name == "affine.load" and _is_inside(user, root)]
    return frozenset(load for load in own if any(_is_inside(store, root) for store in stores_where_read(load)))


def _rounds_what_is_not_stored(root: ir.Operation) -> bool:
    """Return True if a band rounds values as a store would have, and computes with them."""
    found = False

    def visit(operation: ir.Operation) -> ir.WalkResult:
        nonlocal found
        found = operation.name == "arith.truncf" and ROUNDING_MODE not in operation.attributes and _is_used(operation)
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _is_used(rounding: ir.Operation) -> bool:
    """Return True if something else than stores takes what was rounded."""
    return any(use.owner.operation.name != "affine.store" for use in rounding.results[0].uses)


def _is_inside(access: ir.Operation, root: ir.Operation) -> bool:
    return root in loops_around(access)
