"""Lift what the passes made of a function: each of its bands by itself."""

from __future__ import annotations

from contextlib import nullcontext

from bridge.affine.equalities import compared_loads
from bridge.affine.mlir_runtime import ir
from bridge.support.error_boundary import Note, attempt

from .band import FunctionTables, LiftedBand, lift_band


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
            lifted.append(lift_band(root, entry, tables, stores_of, compared))
    return lifted
