"""Lanes: the loops around the stores of a node, below its band, as one index of Inductor's.

A kernel of Inductor's runs one band iteration over a row of lanes.  Stores in loops of fewer iterations than the row
has lanes are executed by the first lane of each segment; a reduction inside such loops is over its segment.  Where a
reduction has fewer elements than there are lanes, the first of those that share an element adds it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import sympy
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

from bridge import inductor
from bridge.affine.mlir_runtime import ir
from bridge.reasons import InvariantError, Reason, Unsupported


@dataclass(frozen=True)
class StoreNest:
    """Hold the loops around the stores of one scheduler node, outermost first.

    band: loops of the band; lanes: loops below it; reduction: loops that the stored values are reduced over;
    guards: the `affine.if`s around each store; once: all lanes have what is stored, and the first one stores it.
    """

    band: list[ir.Operation]
    lanes: list[ir.Operation]
    reduction: list[ir.Operation]
    guards: dict[ir.Operation, list[ir.Operation]] = field(default_factory=dict)
    once: bool = False

    @property
    def count(self) -> int | None:
        """Return the number of lanes; None where an extent is symbolic."""
        loops = [*self.lanes, *self.reduction]
        extents = known_extents(loops)
        return math.prod(extents) if len(extents) == len(loops) else None


def find_store_nest(name: str, stores: list[ir.Operation], reduction: list[ir.Operation]) -> StoreNest:
    """Find the loops around the stores of a node; Unsupported if the stores are not all in the same loops."""
    around = [_around(store) for store in stores]
    if not around or any(loops != around[0][0] for loops, _ in around):
        raise Unsupported(Reason.not_liftable, f"{name}: its stores stand in different loops")
    loops = around[0][0]
    band = [loop for loop in loops if "bridge.band" in loop.attributes] or loops  # one nest alone: no lanes
    guards = {store: conditions for store, (_, conditions) in zip(stores, around, strict=True)}
    return StoreNest(band, [loop for loop in loops if loop not in band], reduction, guards)


def stored_by_one_lane(nest: StoreNest) -> StoreNest:
    """Return the nest of a node that reduces nothing, and stores what others of its band iteration have reduced."""
    return replace(nest, lanes=nest.reduction, reduction=[], once=True) if nest.reduction and not nest.lanes else nest


def _around(access: ir.Operation) -> tuple[list[ir.Operation], list[ir.Operation]]:
    """Return (loops, guards) around an access, outermost first."""
    loops, guards = [], []
    operation = access.parent
    while operation.operation.name != "func.func":
        operation = operation.operation
        if operation.name == "affine.for":
            loops.append(operation)
        elif operation.name == "affine.if":
            guards.append(operation)
        operation = operation.parent
    for loop in loops:
        if "bridge.band" in loop.attributes and "bridge.parallel" not in loop.attributes:
            raise InvariantError("a band loop without the proof that it is parallel")
    return loops[::-1], guards[::-1]


def loops_around(access: ir.Operation) -> list[ir.Operation]:
    """Return the loops around an access, outermost first."""
    return _around(access)[0]


def constant_extent(loop: ir.Operation) -> int | None:
    """Return the extent of a loop from 0; None where it is symbolic, or the smaller of several."""
    upper = list(loop.attributes["upperBoundMap"].value.results)
    return upper[0].value if len(upper) == 1 and isinstance(upper[0], ir.AffineConstantExpr) else None


def known_extents(loops: list[ir.Operation]) -> list[int]:
    """Return the extents of those loops whose extent is constant."""
    return [extent for extent in map(constant_extent, loops) if extent is not None]


def alike(chains: Iterable[list[ir.Operation]], loops: list[ir.Operation]) -> list[list[ir.Operation]]:
    """Return the chains of loops with as many iterations as others, numbers: these are the same lanes."""
    extents = known_extents(loops)
    if len(extents) != len(loops):
        return []
    known = ((chain, known_extents(chain)) for chain in chains)
    return [chain for chain, own in known if len(own) == len(chain) and math.prod(own) == math.prod(extents)]


def in_loops_of(chain: list[ir.Operation], loops: list[ir.Operation], indices: list[sympy.Expr]) -> list[sympy.Expr]:
    """Return the indices in the loops of a chain of the lane that has `indices` in loops of as many iterations."""
    extents, own = known_extents(loops), known_extents(chain)
    return indices if own == extents else digits(lane_number(indices, extents), own)


def lane_number(indices: list[sympy.Expr], extents: list[int]) -> sympy.Expr:
    """Return the number of a lane of which `digits` are the indices."""
    return sympy.expand(inductor.number_of_digits(indices, extents))


def segment_length(nest: StoreNest, row: int | None) -> int | None:
    """Return how many lanes of a row of `row` belong to one iteration of a nest's lane loops; None if it is one.

    Unsupported if the row is no whole number of segments.
    """
    if not nest.lanes or row is None or nest.count is None:
        return None
    if not nest.reduction and nest.count == row:
        return None
    return _share(nest, row, math.prod(known_extents(nest.lanes)))  # which are all, as there is a count


def repeated_lanes(nest: StoreNest, row: int | None) -> int:
    """Return how many lanes of a row of `row` have the same element of what a nest reduces.

    Unsupported if not every element has as many.
    """
    if not nest.reduction or row is None or nest.count is None:
        return 1
    return _share(nest, row, nest.count)


def _share(nest: StoreNest, row: int, iterations: int) -> int:
    """Return the lanes of each of so many iterations; Unsupported if they are no whole number."""
    if row % iterations:
        raise Unsupported(Reason.not_liftable, f"{nest.count} lanes in a row of {row}")
    return row // iterations


def digits(index: sympy.Expr, extents: list[int]) -> list[sympy.Expr]:
    """Return the digits of `index` in the mixed radix of `extents`, the most significant first."""
    found: list[sympy.Expr] = []
    stride = 1
    for extent in reversed(extents[1:]):
        found.append(ModularIndexing(index, stride, extent))
        stride *= extent
    found.append(FloorDiv(index, stride))
    return found[::-1]
