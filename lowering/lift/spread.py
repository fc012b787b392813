"""Put the values of a band that reduces nothing in its lanes: each computes for itself what it needs of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bridge.affine.mlir_runtime import ir

from .lanes import StoreNest


def spread_over_lanes(nests: Mapping[str, StoreNest]) -> dict[str, StoreNest]:
    """Return the nests of a band's nodes, those without lanes in the lanes that the others have, if these are alike.

    Inductor runs nodes of different loops together only beside a reduction. Of what is computed once for all lanes each
    has its own then, as of a scale for all pixels of a channel. Where it is stored, the first lane does that. What some
    of the lanes store alone, under a guard, stays so.
    """
    wide = [nest for nest in nests.values() if nest.lanes]
    narrow = [nest for nest in nests.values() if not nest.lanes]
    if not wide or any(nest.reduction for nest in nests.values()) or any(any(n.guards.values()) for n in narrow):
        return dict(nests)
    lanes = wide[0].lanes
    if any(list(map(_extent, nest.lanes)) != list(map(_extent, lanes)) for nest in wide):
        return dict(nests)
    return {name: nest if nest.lanes else replace(nest, lanes=lanes) for name, nest in nests.items()}


def _extent(loop: ir.Operation) -> tuple[str, list[ir.Value]]:
    """Return what tells the extents of loops from 0 apart: the map of the upper bound and its operands."""
    return str(loop.attributes["upperBoundMap"]), list(loop.operands)
