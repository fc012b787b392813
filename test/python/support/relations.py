"""Find the elements that affine IR accesses, by evaluating its subscripts with numpy over every iteration."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from bridge.affine.mlir_runtime import context, ir


def accessed(text: str, sizes: list[int]) -> dict[tuple[int, str], np.ndarray]:
    """Return (position of the memref, `loaded` or `stored`) -> row-major offsets, one for each time.

    sizes: values of the function's arguments of type index.
    """
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        relations = _Relations(module.body.operations[0].operation, sizes)
        module.operation.walk(relations.visit, ir.WalkOrder.PRE_ORDER)
        return {key: np.concatenate(found) for key, found in relations.found.items()}


class _Relations:
    def __init__(self, function: Any, sizes: list[int]):
        arguments = list(function.regions[0].blocks[0].arguments)
        indices = [a for a in arguments if isinstance(a.type, ir.IndexType)]
        self.arguments = arguments
        self.sizes = dict(zip(indices, sizes, strict=True))
        self.found: dict[tuple[int, str], list[np.ndarray]] = {}

    def visit(self, operation: Any) -> Any:
        operation = operation.operation
        if operation.name == "affine.load":
            self._add(operation, list(operation.operands), "loaded")
        if operation.name == "affine.store":
            self._add(operation, list(operation.operands)[1:], "stored")
        return ir.WalkResult.ADVANCE

    def _add(self, access: Any, operands: list[Any], kind: str) -> None:
        memref, *indices = operands
        values, executed = self._iterations(access)
        subscripts = self._results(access.attributes["map"], indices, values)
        offsets = np.zeros(executed.shape, np.int64)
        for extent, subscript in zip(ir.MemRefType(memref.type).shape, subscripts, strict=True):
            offsets = offsets * max(extent, 0) + subscript  # only the first extent is symbolic
        self.found.setdefault((self.arguments.index(memref), kind), []).append(offsets[executed])

    def _iterations(self, access: Any) -> tuple[dict[Any, np.ndarray], np.ndarray]:
        """Return the values of the induction variables around an access, and where its guards let it execute."""
        around: list[Any] = []
        block = access.block
        while block.owner.operation.name in ("affine.for", "affine.if"):
            around.insert(0, (block.owner.operation, block.region))
            block = block.owner.operation.block
        loops = [operation for operation, _ in around if operation.name == "affine.for"]
        grids = np.indices([self._extent(loop) for loop in loops])
        values = {loop.regions[0].blocks[0].arguments[0]: grid for loop, grid in zip(loops, grids, strict=True)}
        executed = np.ones(grids.shape[1:], bool)
        for operation, region in around:
            if operation.name == "affine.if":
                executed &= self._holds(operation, values) == (region == operation.regions[0])
        return values, executed

    def _extent(self, loop: Any) -> int:
        lower, upper = loop.attributes["lowerBoundMap"], loop.attributes["upperBoundMap"]
        assert str(lower) == "affine_map<() -> (0)>"
        operands = list(loop.operands)[: upper.value.n_inputs]
        return int(min(self._results(upper, operands, {})))

    def _holds(self, guard: Any, values: dict) -> Any:
        return np.logical_and.reduce(self._results(guard.attributes["condition"], list(guard.operands), values))

    def _results(self, attribute: Any, operands: list[Any], values: dict) -> list[Any]:
        """Return the results of a map, or the values that a set constrains."""
        dims, symbols, body = _ATTRIBUTE.match(str(attribute)).groups()
        names = re.findall(r"\w+", f"{dims} {symbols or ''}")
        scope = dict(zip(names, [self._index(operand, values) for operand in operands], strict=True))
        assert "ceildiv" not in body
        python = body.replace("floordiv", "//").replace(" mod ", " % ")
        return list(eval(f"({python},)", {}, scope)) if body else []

    def _index(self, value: Any, values: dict) -> Any:
        if value in values or value in self.sizes:
            return values.get(value, self.sizes.get(value))
        operation = value.owner.operation if hasattr(value.owner, "operation") else value.owner
        if operation.name == "arith.constant":
            return ir.IntegerAttr(operation.attributes["value"]).value
        (result,) = self._results(operation.attributes["map"], list(operation.operands), values)
        return result


#: `affine_map<(d0)[s0] -> (d0 + s0)>` and `affine_set<(d0) : (d0 - 4 >= 0)>`: dimensions, symbols, results.
_ATTRIBUTE = re.compile(r"affine_(?:map|set)<\((.*?)\)(?:\[(.*?)\])? (?:->|:) \((.*)\)>$")
