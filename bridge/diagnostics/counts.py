"""Operations, loads, stores and loops of affine IR, and how often they execute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import sympy

from ..affine.mlir_runtime import context, ir
from ..lowering.lift.index import apply_map

#: What costs no arithmetic: structure, constants and addresses.
_FREE = {"affine.for", "affine.if", "affine.yield", "affine.apply", "arith.constant", "arith.index_cast"}

_LOADS = ("affine.load", "bridge.gather")


@dataclass(frozen=True)
class Counts:
    """Hold counts of one function, as written; executed: operations, at typical sizes."""

    nests: int
    loops: int
    loads: int
    stores: int
    operations: int
    executed: int

    def __str__(self) -> str:
        return (
            f"{self.nests} nests, {self.loops} loops, {self.loads} loads, {self.stores} stores, "
            f"{self.operations} operations, {self.executed:.3g} executed"
        )


def count(text: str, sizes: dict[str, int]) -> Counts:
    """Count what a module's first function does; sizes: by the labels `bridge.size` of its arguments."""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)  # which owns the function
        function = module.body.operations[0].operation
        found: Counter[str] = Counter()
        executed: Counter[str] = Counter()
        _visit(function.regions[0].blocks[0], 1, argument_sizes(function, sizes), found, executed)
        nests = sum(op.operation.name == "affine.for" for op in function.regions[0].blocks[0].operations)
    names = found.keys() - _FREE - {*_LOADS, "affine.store", "func.return"}
    return Counts(
        nests,
        found["affine.for"],
        sum(found[name] for name in _LOADS),
        found["affine.store"],
        sum(found[name] for name in names),
        sum(executed[name] for name in names),
    )


def argument_sizes(function: ir.Operation, sizes: dict[str, int]) -> dict:
    """Return the function's arguments for sizes, with their values."""
    arguments = function.regions[0].blocks[0].arguments
    labels = [ir.DictAttr(a) for a in ir.ArrayAttr(function.attributes["arg_attrs"])] if sizes else []
    named = zip(arguments, labels, strict=False)
    return {a: sizes[ir.StringAttr(d["bridge.size"]).value] for a, d in named if "bridge.size" in d}


def _visit(block: ir.Block, times: int, sizes: dict, found: Counter, executed: Counter) -> None:
    for view in block.operations:
        operation = view.operation
        found[operation.name] += 1
        executed[operation.name] += times
        inner = times * trip_count(operation, sizes) if operation.name == "affine.for" else times
        for region in operation.regions:
            for nested in region.blocks:
                _visit(nested, inner, sizes, found, executed)


def trip_count(loop: ir.Operation, sizes: dict) -> int:
    """Return iterations of an affine.for at the given sizes; 1 where a bound depends on an outer loop."""
    lower, upper = loop.attributes["lowerBoundMap"].value, loop.attributes["upperBoundMap"].value
    operands = list(loop.operands)
    low = _bound(lower, operands[: lower.n_inputs], sizes, max)
    high = _bound(upper, operands[lower.n_inputs : lower.n_inputs + upper.n_inputs], sizes, min)
    if low is None or high is None:
        return 1
    return max(0, -(-(high - low) // ir.IntegerAttr(loop.attributes["step"]).value))


def _bound(affine_map: ir.Attribute, operands: list, sizes: dict, choose: Callable[[Iterable[int]], int]) -> int | None:
    values = [sizes.get(operand) for operand in operands]
    if None in values:
        return None
    return choose(int(result) for result in apply_map(affine_map, [sympy.Integer(value) for value in values]))
