"""Fused bands of the affine IR as loop bodies: one for each scheduler node in the band."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import sympy

from bridge.mlir_runtime import ir
from bridge.reasons import InvariantError, Reason, Unsupported

from .evaluate import Environment, Evaluator
from .footprint import row_registers
from .index import apply_map


@dataclass(frozen=True)
class LiftedNode:
    """A scheduler node rewritten by the passes.

    iter_sizes / reduce_sizes: extents of its loops, outermost first.
    body: called as `body(iter_indices, reduce_indices)` inside a trace of Inductor's ops.
    """

    name: str
    iter_sizes: list[sympy.Expr]
    reduce_sizes: list[sympy.Expr]
    body: Callable[[list[sympy.Expr], list[sympy.Expr]], None]


@dataclass(frozen=True)
class LiftedBand:
    """One kernel: the scheduler nodes in it, in order, and the kernels they were in before.

    registers: 32-bit registers that hold what one band iteration reduces, None where that is symbolic.
    """

    nodes: list[LiftedNode]
    kernels: list[int]
    registers: int | None = None


@dataclass(frozen=True)
class FunctionTables:
    """What the arguments of the function stand for, by position: buffers with strides, then sizes."""

    buffers: list[tuple[str, list[sympy.Expr]]]
    sizes: list[sympy.Expr]


def lift_function(function, tables: FunctionTables, stores_of: dict[str, set[str]]) -> list[LiftedBand]:
    """Every band of several nodes in `function`; `stores_of` names the buffers that each node writes."""
    entry = function.regions[0].blocks[0]
    roots = [op.operation for op in entry.operations if op.operation.name == "affine.for"]
    return [lift_band(root, entry, tables, stores_of) for root in roots if "bridge.band" in root.attributes]


def lift_band(root, entry, tables: FunctionTables, stores_of: dict[str, set[str]]) -> LiftedBand:
    """Reads one fused nest back.  InvariantError if a loop of the band was not proven parallel."""
    names = [ir.StringAttr(n).value for n in ir.ArrayAttr(root.attributes["bridge.nodes"])]
    kernels = [ir.IntegerAttr(k).value for k in ir.ArrayAttr(root.attributes["bridge.kernels"])]
    stores = _stores(root)
    arguments = list(entry.arguments)
    buffers = dict(zip(arguments, tables.buffers, strict=False))
    sizes = dict(zip(arguments[len(tables.buffers) :], tables.sizes, strict=True))
    nodes = [_lift_node(n, _stores_to(stores, stores_of[n], buffers), buffers, sizes) for n in names]
    # Found from the stores: code motion may have taken a reduction that no band variable touches out of the band.
    reductions = {loops[0] for s in stores if (loops := _reduction_loops([s]))}
    return LiftedBand(nodes, kernels, row_registers(reductions))


def _stores(root) -> list:
    found: list = []

    def visit(operation):
        if operation.name == "affine.store":
            found.append(operation.operation)
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _stores_to(stores: list, written: set, buffers: dict) -> list:
    return [s for s in stores if buffers[s.operands[1]][0] in written]


def _lift_node(name: str, stores: list, buffers: dict, sizes: dict) -> LiftedNode:
    nests = [_enclosing(store) for store in stores]
    if not nests or any(n != nests[0] for n in nests):
        raise Unsupported(Reason.not_liftable, f"{name}: its stores stand in different loops")
    loops, guards = nests[0]
    reduction = _reduction_loops(stores)
    extents = [_extent(loop, sizes) for loop in loops]
    kept = [(loop, extent) for loop, extent in zip(loops, extents, strict=True) if extent != 1]
    unit = {loop.regions[0].blocks[0].arguments[0]: sympy.Integer(0) for loop in loops}

    def body(iter_indices, reduce_indices):
        from bridge.inductor_compat import inductor_ops

        indices = {**sizes, **unit}
        indices.update(_bind([loop for loop, _ in kept], iter_indices))
        indices.update(_bind(reduction, reduce_indices))
        _run(stores, guards, Environment(inductor_ops(), buffers, indices))

    return LiftedNode(name, [e for _, e in kept], [_extent(loop, sizes) for loop in reduction], body)


def _bind(loops: list, indices: list[sympy.Expr]) -> dict:
    return {loop.regions[0].blocks[0].arguments[0]: i for loop, i in zip(loops, indices, strict=True)}


def _run(stores: list, guards: list, environment: Environment) -> None:
    if guards:
        raise Unsupported(Reason.not_liftable, "a store under a guard")
    evaluator = Evaluator(environment)
    for store in stores:
        value = evaluator.stored(store)
        name, index = evaluator.location(store, 1)
        reduced = _is_reduction_result(store)
        write = environment.ops.store_reduction if reduced else environment.ops.store
        write(name, index, value)


def _enclosing(store) -> tuple[list, list]:
    """(loops, guards) around a store, outermost first."""
    loops, guards = [], []
    operation = store.parent
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


def _reduction_loops(stores: list) -> list:
    """The loops of the reduction that the stored value depends on, outermost first; empty if there is none."""
    for store in stores:
        seen: set = set()
        loop = _find_reduction(store.operands[0], seen)
        if loop is not None:
            return _reduction_chain(loop)
    return []


def _find_reduction(value, seen: set):
    owner = value.owner
    if isinstance(owner, ir.Block) or value in seen:
        return None
    seen.add(value)
    operation = owner.operation if hasattr(owner, "operation") else owner
    if operation.name == "affine.for":
        return operation
    for operand in operation.operands:
        found = _find_reduction(operand, seen)
        if found is not None:
            return found
    return None


def _reduction_chain(loop) -> list:
    chain = [loop]
    while True:
        inner = [o.operation for o in chain[-1].regions[0].blocks[0].operations if o.operation.name == "affine.for"]
        if not inner:
            return chain
        chain.append(inner[0])


def _is_reduction_result(store) -> bool:
    return _find_reduction(store.operands[0], set()) is not None


def _extent(loop, sizes: dict) -> sympy.Expr:
    """The trip count of a loop that starts at 0 with step 1."""
    lower = loop.attributes["lowerBoundMap"].value
    if list(lower.results) != [ir.AffineConstantExpr.get(0)]:
        raise Unsupported(Reason.not_liftable, "a loop that does not start at 0")
    segments = list(loop.attributes["operandSegmentSizes"])
    operands = list(loop.operands)[segments[0] : segments[0] + segments[1]]
    upper = apply_map(loop.attributes["upperBoundMap"].value, [sizes[o] for o in operands])
    if len(upper) != 1:
        raise Unsupported(Reason.not_liftable, "a loop with several upper bounds")
    return sympy.expand(upper[0])
