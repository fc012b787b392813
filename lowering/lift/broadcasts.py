"""Find what all lanes of a row read, and some of them have: those of the segment that reduced it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import sympy

from bridge.affine.mlir_runtime import induction_variable, ir
from bridge.reasons import Reason, Unsupported

from .lanes import constant_extent, known_extents, loops_around

#: An iteration of a store's loops -> elements from where a load is to where it stores.
Distance: TypeAlias = "Callable[[Mapping[ir.Value, sympy.Expr]], sympy.Expr]"


@dataclass(frozen=True)
class Broadcast:
    """Hold the store that a value is loaded from, and the loops around it below the band, outermost first."""

    store: ir.Operation
    lanes: list[ir.Operation]

    def segment(self, distance: Distance, row: int) -> tuple[int, int]:
        """Return (number of the segment of a row of so many lanes that stores it, lanes of a segment).

        distance: how far from what is loaded an iteration of the loops stores.  Unsupported where that varies, or
        where the row is no whole number of segments.
        """
        extents = known_extents(self.lanes)
        segments = math.prod(extents)
        if len(extents) == len(self.lanes) and row % segments == 0:
            zero = dict.fromkeys(map(induction_variable, self.lanes), sympy.Integer(0))
            strides = [distance({**zero, variable: sympy.Integer(1)}) - distance(zero) for variable in zero]
            places = _digits_at(-sympy.expand(distance(zero)), list(map(sympy.expand, strides)), extents)
            if sympy.expand(distance(dict(zip(zero, map(sympy.Integer, places), strict=True)))) == 0:
                return _number(places, extents), row // segments
        raise Unsupported(Reason.not_liftable, f"which of {segments} segments of {row} lanes has a value")


def _digits_at(place: sympy.Expr, strides: list[sympy.Expr], extents: list[int]) -> list[int]:
    """Return the numbers, each below its extent, that lead to a place by strides; others where none do."""
    found = [0] * len(strides)
    if all(number.is_Integer for number in [place, *strides]):
        rest = int(place)
        for position in sorted(range(len(strides)), key=lambda position: -abs(int(strides[position]))):
            stride = int(strides[position])
            found[position] = min(max(rest // stride, 0), extents[position] - 1) if stride else 0
            rest -= found[position] * stride
    return found


def _number(places: list[int], extents: list[int]) -> int:
    """Return the number whose digits in the mixed radix of `extents` are `places`."""
    number = 0
    for place, extent in zip(places, extents, strict=True):
        number = number * extent + place
    return number


def find_broadcasts(root: ir.Operation, overwritten: Collection[ir.Value] = ()) -> dict[ir.Value, Broadcast]:
    """Return the values that a band loads at one place in all lanes, after lanes have stored at different ones.

    root: the outermost loop of the band; overwritten: memrefs whose loads are of what was there before.
    """
    sources: dict[ir.Value, Broadcast] = {}
    found: dict[ir.Value, Broadcast] = {}
    for access in _accesses(root):
        if access.name == "affine.store":
            broadcast = Broadcast(access, _lanes(access))
            if access.operands[1] not in overwritten and _varies(access, broadcast.lanes, 2):
                sources[access.operands[1]] = broadcast
        elif access.operands[0] in sources and not _varies(access, _lanes(access), 1):
            found[access.results[0]] = sources[access.operands[0]]
    return found


def depends_on(value: ir.Value, wanted: Collection[ir.Value]) -> bool:
    """Return True if a value is one of those, or is computed from one of them."""
    pending, seen = [value], set()
    while pending and wanted:
        current = pending.pop()
        if current in wanted:
            return True
        if current in seen or isinstance(current.owner, ir.Block):
            continue
        seen.add(current)
        pending += current.owner.operands
        blocks = [block for region in current.owner.regions for block in region.blocks]
        pending += [operand for block in blocks for operand in list(block.operations)[-1].operands]
    return False


def _accesses(root: ir.Operation) -> list[ir.Operation]:
    """Return the loads and stores in a nest, in order."""
    found: list[ir.Operation] = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        """Keep a load or a store."""
        if operation.name in ("affine.load", "affine.store"):
            found.append(operation.operation)
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _lanes(access: ir.Operation) -> list[ir.Operation]:
    """Return the loops around an access, below the band."""
    return [loop for loop in loops_around(access) if "bridge.band" not in loop.attributes]


def _varies(access: ir.Operation, loops: list[ir.Operation], first_subscript: int) -> bool:
    """Return True if the place of an access depends on the variable of one of those loops, and that has several."""
    variables = [induction_variable(loop) for loop in loops if constant_extent(loop) != 1]
    return any(depends_on(subscript, variables) for subscript in list(access.operands)[first_subscript:])
