"""Lifts fused bands of the affine IR to loop bodies: one for each scheduler node in the band."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import sympy
from torch.utils._sympy.functions import ModularIndexing

from bridge.affine import ops_table
from bridge.affine.mlir_runtime import induction_variable, ir
from bridge.affine.translate.cyclic_shifts import ShiftedSubscripts
from bridge.inductor import inductor_ops
from bridge.reasons import Reason, Unsupported

from ..triton.profitability import LONGEST_IN_BLOCKS
from .broadcasts import Broadcast, depends_on, find_broadcasts
from .environment import Environment
from .evaluate import Evaluator
from .footprint import goes_once, keeps_elements, lane_combinations, loop_around, row_registers, spread_loops
from .index import apply_map
from .lanes import (
    StoreNest,
    alike,
    constant_extent,
    digits,
    find_store_nest,
    in_loops_of,
    known_extents,
    loops_around,
    repeated_lanes,
    segment_length,
    stored_by_one_lane,
)
from .reduction_loops import reduced_beside_lanes, reduces, reduction_loops, waits_for_reduction
from .spread import spread_over_lanes

#: A buffer: its name, and its strides in elements.
StridedBuffer: TypeAlias = tuple[str, list[sympy.Expr]]


@dataclass(frozen=True)
class LiftedNode:
    """Describe a scheduler node rewritten by the passes.

    iter_sizes / reduce_sizes: extents of its loops, outermost first.
    body: called as `body(iter_indices, reduce_indices)` inside a trace of Inductor's ops.
    stored_once: the same where several lanes have the same element and the first of them stores it; None elsewhere.
    """

    name: str
    iter_sizes: list[sympy.Expr]
    reduce_sizes: list[sympy.Expr]
    body: Callable[[list[sympy.Expr], list[sympy.Expr]], None]
    stored_once: Callable[[list[sympy.Expr], list[sympy.Expr]], None] | None = None


@dataclass(frozen=True)
class LiftedBand:
    """Describe one kernel: the scheduler nodes in it, in order, and the kernels they were in before.

    registers: 32-bit registers that hold what one band iteration reduces, None where that is symbolic; own_registers:
    those of what no other iteration reduces.
    in_registers: the bodies rely on it that a row is kept there.
    state_registers: the same with what lanes reduce to states of several values by themselves, or keep several elements
    of; 0 where they do neither.
    once: nothing of a row waits for what is reduced from it: a loop reads it once, and need not keep it.
    """

    nodes: list[LiftedNode]
    kernels: list[int]
    registers: int | None = None
    in_registers: bool = False
    state_registers: int = 0
    once: bool = False
    own_registers: int | None = None


@dataclass(frozen=True)
class FunctionTables:
    """Tell what the arguments of the function stand for, by position: buffers with strides, then sizes.

    simt_target: the code generator is Triton's, as Bridge extends it: a body can compute with the results of its own
        reductions, reduce segments of a row, and store in some lanes alone;
    keeps_row: true if a kernel keeps in registers a row that takes as many of 32 bits (None: unknown);
        None where it does not matter, as nothing is generated;
    extent: an expression of `sizes` as Inductor writes a loop's extent;
    new_contents: the name to store under, of each buffer that is overwritten;
    seeds: the buffers of seeds of random numbers;
    elementwise: nodes that reduce nothing, which Inductor does not take for reductions, whatever they store;
    read_again: as in `bridge.affine.translate.group.GroupTarget`;
    shifts: by buffer, of subscripts that are shifted in memory;
    loads_of: the buffers that each node loads.
    """

    buffers: list[StridedBuffer]
    sizes: list[sympy.Expr]
    simt_target: bool = True
    keeps_row: Callable[[int | None], bool] | None = None
    extent: Callable[[sympy.Expr], sympy.Expr] = sympy.expand
    new_contents: Mapping[str, str] = field(default_factory=dict)
    seeds: frozenset[str] = frozenset()
    elementwise: frozenset[str] = frozenset()
    read_again: Mapping[str, frozenset[int]] = field(default_factory=dict)
    shifts: Mapping[str, tuple[ShiftedSubscripts, ...]] = field(default_factory=dict)
    loads_of: Mapping[str, set[str]] = field(default_factory=dict)


def lift_band(
    root: ir.Operation,
    entry: ir.Block,
    tables: FunctionTables,
    stores_of: dict[str, set[str]],
    compared: frozenset[ir.Value] = frozenset(),
) -> LiftedBand:
    """Read one fused nest back.  InvariantError if a loop of the band was not proven parallel.

    compared: what is loaded as memory would have rounded it.
    """
    names = [ir.StringAttr(n).value for n in ir.ArrayAttr(root.attributes["bridge.nodes"])]
    kernels = [ir.IntegerAttr(k).value for k in ir.ArrayAttr(root.attributes["bridge.kernels"])]
    stores = _stores(root)
    buffers, sizes = _arguments(entry, tables)
    by_node = {name: _stores_to(stores, stores_of[name], buffers) for name in names}
    _check_complete(by_node, stores_of, buffers)
    beside = reduced_beside_lanes(stores)
    nests = {name: _store_nest(name, own, tables, beside) for name, own in by_node.items()}
    # Found from the stores: code motion may have taken a reduction that no band variable touches out of the band.
    combinations = lane_combinations(root)
    chains = [chain for store in stores if (chain := reduction_loops([store], beside))]
    reductions = {chain[0] for chain in chains}
    kept = {loop_around(combination) for combination in combinations if keeps_elements(combination)}
    kept |= set(spread_loops(root)) if ops_table.UNROLLED_REDUCTIONS in entry.owner.attributes else set()
    registers, row = row_registers(reductions | kept), _lanes_of_row(nests.values())
    once, broadcasts = goes_once(root), _broadcasts(root, reductions, buffers, tables)
    in_registers = tables.simt_target and tables.keeps_row is not None and tables.keeps_row(registers)
    if in_registers and once and registers is not None and registers > LONGEST_IN_BLOCKS:
        in_registers = bool(kept or broadcasts) or any(_needs_registers(nest, row) for nest in nests.values())
    if kept and tables.keeps_row is not None and not in_registers:
        raise Unsupported(Reason.not_profitable, f"{names}: lanes reduce {registers} registers a row by themselves")
    scope = _Scope(
        buffers,
        sizes,
        tables.simt_target,
        row,
        in_registers,
        tables.keeps_row is not None and not in_registers,
        tables.extent,
        tables.new_contents,
        tables.seeds,
        compared,
        broadcasts,
        chains=chains,
        shifts=tables.shifts,
    )
    wide = spread_over_lanes(nests) if tables.simt_target and not reductions and not kept else nests
    nodes = [
        _lift_node(name, by_node[name], wide[name], replace(scope, overwritten=buffers), wide[name] is not nests[name])
        for name, buffers in zip(names, _overwritten_before(names, stores_of, tables.new_contents), strict=True)
    ]
    for name in names:
        _check_one_place(name, by_node[name], scope)
    return LiftedBand(
        nodes,
        kernels,
        registers,
        in_registers,
        _state_registers(reductions, kept, combinations),
        once,
        row_registers(reductions | kept, shared=False),
    )


def _arguments(
    entry: ir.Block, tables: FunctionTables
) -> tuple[dict[ir.Value, StridedBuffer], dict[ir.Value, sympy.Expr]]:
    """Return (the buffers, the sizes) that the arguments of a function are."""
    arguments = list(entry.arguments)
    buffers = dict(zip(arguments, tables.buffers, strict=False))
    return buffers, dict(zip(arguments[len(tables.buffers) :], tables.sizes, strict=True))


def _state_registers(reductions: set[ir.Operation], kept: set[ir.Operation], combinations: list[ir.Operation]) -> int:
    """Return the registers of a row whose lanes reduce by themselves, or keep several elements; 0 for others."""
    in_lanes = kept | set(map(loop_around, combinations))
    return (row_registers(reductions | in_lanes) or 0) if in_lanes else 0


def _broadcasts(
    root: ir.Operation,
    reductions: set[ir.Operation],
    buffers: dict[ir.Value, StridedBuffer],
    tables: FunctionTables,
) -> dict[ir.Value, Broadcast]:
    """Return the loads of what other lanes have: none where there are no lanes.

    Unsupported where nothing is reduced: the lanes of a row may be in several programs then.
    """
    overwritten = [memref for memref, (name, _) in buffers.items() if name in tables.new_contents]
    found = find_broadcasts(root, overwritten) if tables.simt_target else {}
    if found and not reductions:
        raise Unsupported(Reason.not_liftable, "what another lane has is read in a row that nothing is reduced of")
    return found


def _store_nest(name: str, stores: list[ir.Operation], tables: FunctionTables, beside: set[ir.Operation]) -> StoreNest:
    """Return the loops around the stores of a node, which reduces nothing if Inductor's does not."""
    nest = find_store_nest(name, stores, reduction_loops(stores, beside))
    return stored_by_one_lane(nest) if name in tables.elementwise else nest


def _check_one_place(name: str, stores: list[ir.Operation], scope: _Scope) -> None:
    """Raise Unsupported where a node stores several elements of a buffer in a loop, and its kernel loads the buffer.

    Inductor gives every load of a buffer that its kernel has stored the value that was stored last, whichever element
    that is.  In C++ a kernel is what has the same loops.  What is overwritten has another name from then on.
    """
    places = Counter(s.operands[1] for s in stores if scope.buffers[s.operands[1]][0] not in scope.new_contents)
    for memref in (memref for memref, count in places.items() if count > 1):
        own = loops_around(stores[0])
        users = [use.owner.operation for use in memref.uses]
        loads = [loops_around(user) for user in users if user.name == "affine.load"]
        beside = [loops for loops in loads if loops[:1] == own[:1]]
        if any(scope.simt_target or _lane_extents(loops) == _lane_extents(own) for loops in beside):
            detail = f"{scope.buffers[memref][0]} is stored at several places, and read beside them"
            raise Unsupported(Reason.not_liftable, f"{name}: {detail}")


def _lane_extents(loops: list[ir.Operation]) -> list[int | None]:
    """Return the extents of loops, but those of the band."""
    return [constant_extent(loop) for loop in loops if "bridge.band" not in loop.attributes]


def _overwritten_before(
    names: list[str], stores_of: dict[str, set[str]], new_contents: Mapping[str, str]
) -> list[frozenset[str]]:
    """Return for each node the buffers that the nodes before it have overwritten."""
    before = (set().union(*(stores_of[name] for name in names[:position])) for position in range(len(names)))
    return [frozenset(written & new_contents.keys()) for written in before]


def _lanes_of_row(nests: Iterable[StoreNest]) -> int | None:
    """Return the most lanes of any node, which are the row's; None where they are not known."""
    counts = [s.count for s in nests if s.lanes or s.reduction]
    known = [count for count in counts if count is not None]
    return max(known) if known and len(known) == len(counts) else None


def _stores(root: ir.Operation) -> list[ir.Operation]:
    """Return the stores in a nest, in order."""
    found: list[ir.Operation] = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        """Keep a store."""
        if operation.name == "affine.store":
            found.append(operation.operation)
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _stores_to(
    stores: list[ir.Operation], written: set[str], buffers: dict[ir.Value, StridedBuffer]
) -> list[ir.Operation]:
    """Return the stores to buffers of those names."""
    return [s for s in stores if buffers[s.operands[1]][0] in written]


def _check_complete(
    by_node: dict[str, list[ir.Operation]], stores_of: dict[str, set[str]], buffers: dict[ir.Value, StridedBuffer]
) -> None:
    """Raise Unsupported where code motion took a store out of a band whose loops it does not depend on."""
    for name, stores in by_node.items():
        if {buffers[store.operands[1]][0] for store in stores} != stores_of[name]:
            raise Unsupported(Reason.not_liftable, f"{name}: a part of it has left the band")


@dataclass(frozen=True)
class _Scope:
    """Hold what every node of a band is lifted with.

    buffers, sizes: the function's tables by SSA value; row: lanes of a row; in_registers: a kernel keeps the row in
    registers; looped: it may go over the row in a loop; simt_target, extent, new_contents, seeds: as in
    `FunctionTables`; compared, broadcasts: as in `Environment`; overwritten: the buffers that earlier nodes of the band
    have overwritten; chains: the loops of each reduction, outermost first; shifts: as
    in `FunctionTables`.
    """

    buffers: dict[ir.Value, StridedBuffer]
    sizes: dict[ir.Value, sympy.Expr]
    simt_target: bool
    row: int | None
    in_registers: bool
    looped: bool
    extent: Callable[[sympy.Expr], sympy.Expr]
    new_contents: Mapping[str, str]
    seeds: frozenset[str]
    compared: frozenset[ir.Value]
    broadcasts: Mapping[ir.Value, Broadcast]
    overwritten: frozenset[str] = frozenset()
    chains: Sequence[list[ir.Operation]] = ()
    shifts: Mapping[str, tuple[ShiftedSubscripts, ...]] = field(default_factory=dict)


def _works_on_segments(nest: StoreNest, row: int | None) -> bool:
    """Return True if a node's loops over lanes are no whole row, which has to be in registers."""
    return segment_length(nest, row) is not None or repeated_lanes(nest, row) != 1


def _needs_registers(nest: StoreNest, row: int | None) -> bool:
    """Return True if a node can only be in a kernel that keeps its row in registers."""
    return nest.once or _works_on_segments(nest, row)


def _lift_node(
    name: str, stores: list[ir.Operation], nest: StoreNest, scope: _Scope, spread: bool = False
) -> LiftedNode:
    """Lift one node; Unsupported if its loops cannot be Inductor's."""
    if spread:
        once = _lift_whole(name, stores, replace(nest, once=True), scope)
        return replace(_lift_whole(name, stores, nest, scope), stored_once=once.body)
    if not scope.simt_target and any(nest.guards.values()):
        raise Unsupported(Reason.not_liftable, f"{name}: a store under a guard")
    if not scope.simt_target:
        return _lift_whole(name, stores, nest, scope)
    if not scope.in_registers:
        _check_loops(name, stores, nest, scope)
    if nest.once and not (scope.in_registers and nest.count == scope.row):
        raise Unsupported(Reason.not_liftable, f"{name}: it stores what no whole row in registers has reduced")
    segment, repeated = segment_length(nest, scope.row), repeated_lanes(nest, scope.row)
    if not _works_on_segments(nest, scope.row):
        return _lift_whole(name, stores, nest, scope)
    return _lift_segments(name, stores, nest, scope, segment, repeated)


def _check_loops(name: str, stores: list[ir.Operation], nest: StoreNest, scope: _Scope) -> None:
    """Raise Unsupported for a node that a loop over the row cannot have, as a guarded store before its sum is there."""
    if any(depends_on(store.operands[0], scope.broadcasts) for store in stores):
        raise Unsupported(Reason.not_liftable, f"{name}: a row to broadcast segments of does not fit in registers")
    if nest.reduction and any(nest.guards[store] and reduces(store) for store in stores):
        raise Unsupported(Reason.not_liftable, f"{name}: a store under a guard of what may be reduced in a loop")
    if scope.looped and any(map(waits_for_reduction, stores)):
        raise Unsupported(Reason.not_liftable, f"{name}: it needs what a loop reduces before that has ended")


def _lift_whole(name: str, stores: list[ir.Operation], nest: StoreNest, scope: _Scope) -> LiftedNode:
    """Lift a node whose loops Inductor runs as they are."""
    loops = [*nest.band, *nest.lanes]
    extents = [_extent(loop, scope) for loop in loops]
    kept = [(loop, extent) for loop, extent in zip(loops, extents, strict=True) if extent != 1]
    reduced = [_extent(loop, scope) for loop in nest.reduction]
    if reduced and all(extent == 1 for extent in reduced):  # Inductor takes it for a reduction, and asserts that it is.
        raise Unsupported(Reason.not_liftable, f"{name}: its reduction was unrolled to the end")

    def body(iter_indices: list[sympy.Expr], reduce_indices: list[sympy.Expr]) -> None:
        """Run the stores in the loops."""
        indices = {**scope.sizes, **{induction_variable(loop): sympy.Integer(0) for loop in loops}}
        indices.update(_bind([loop for loop, _ in kept], iter_indices))
        indices.update(_bind(nest.reduction, reduce_indices))
        inner = nest.reduction or nest.lanes
        lane = [indices[induction_variable(loop)] for loop in inner]
        for chain in alike(scope.chains, inner):
            indices.update(_bind(chain, in_loops_of(chain, inner, lane)))
        first = sympy.Add(*lane) if nest.once else None  # zero in the first lane alone, whatever the extents
        _run(stores, nest, _environment(scope, indices), first)

    return LiftedNode(name, [e for _, e in kept], reduced, body)


def _lift_segments(
    name: str, stores: list[ir.Operation], nest: StoreNest, scope: _Scope, segment: int | None, repeated: int
) -> LiftedNode:
    """Lift a node that works on segments of a row: the row is its one inner loop, and one lane a segment stores.

    segment: lanes of an iteration of the node's lane loops, None where it has none: it reduces the whole row;
    repeated: lanes that have the same element of what it reduces.
    """
    if not scope.in_registers:
        raise Unsupported(Reason.not_liftable, f"{name}: a row to work on in segments does not fit in registers")
    row = sympy.Integer(scope.row)
    band = [_extent(loop, scope) for loop in nest.band]
    reduces = bool(nest.reduction)

    def body(iter_indices: list[sympy.Expr], reduce_indices: list[sympy.Expr]) -> None:
        """Run the stores in the first lane of each segment."""
        *outer, lane = [*iter_indices, *reduce_indices]
        indices = {**scope.sizes, **_bind(nest.band, outer)}
        loops = [*nest.lanes, *nest.reduction]
        extents = [*known_extents(loops), repeated if reduces or segment is None else segment]
        indices.update(zip(map(induction_variable, loops), digits(lane, extents), strict=False))
        once = _place_in(lane, repeated) if repeated > 1 else None
        environment = _environment(scope, indices, segment if reduces else None, once)
        _run(stores, nest, environment, None if segment is None else _place_in(lane, segment))

    if reduces:
        return LiftedNode(name, band, [row], body)
    return LiftedNode(name, [*band, row], [], body)


def _place_in(lane: sympy.Expr, lanes: int) -> sympy.Expr:
    """Return the number of a lane among `lanes` that follow each other."""
    return ModularIndexing(lane, sympy.Integer(1), sympy.Integer(lanes))


def _environment(
    scope: _Scope, indices: dict[ir.Value, sympy.Expr], segment: int | None = None, once: sympy.Expr | None = None
) -> Environment:
    """Return the meaning of values in one lane."""
    return Environment(
        inductor_ops(),
        scope.buffers,
        indices,
        scope.simt_target,
        segment,
        once,
        scope.in_registers,
        scope.looped,
        scope.new_contents,
        scope.overwritten,
        scope.seeds,
        scope.compared,
        scope.row,
        scope.broadcasts,
        scope.shifts,
    )


def _bind(loops: list[ir.Operation], indices: list[sympy.Expr]) -> dict[ir.Value, sympy.Expr]:
    """Return the value of each loop's variable."""
    return {induction_variable(loop): i for loop, i in zip(loops, indices, strict=True)}


def _run(stores: list[ir.Operation], nest: StoreNest, environment: Environment, first: sympy.Expr | None) -> None:
    """Store everything; `first` is zero in the lanes that do, None if all do."""
    evaluator = Evaluator(environment)
    places = [evaluator.location(store, 1) for store in stores]
    # All of them first where something is overwritten: Inductor takes a later load of it for the first stored value.
    values = (
        [evaluator.stored(s) for s in stores] if any(name in environment.new_contents for name, _ in places) else []
    )
    for number, (store, (buffer, index)) in enumerate(zip(stores, places, strict=True)):
        value = values[number] if values else evaluator.stored(store)
        name = environment.new_contents.get(buffer, buffer)
        masks = [evaluator.condition(guard) for guard in nest.guards[store]]
        masks += [] if first is None else [evaluator.is_zero(first)]
        if masks:
            lanes = _first_lanes(nest, evaluator, nest.guards[store]) if first is None else ""
            environment.ops.store(name, index, evaluator.guarded(store, value, masks, lanes))
            continue
        write = environment.ops.store_reduction if nest.reduction and reduces(store) else environment.ops.store
        write(name, index, value)


def _first_lanes(nest: StoreNest, evaluator: Evaluator, guards: Sequence[ir.Operation]) -> str:
    """Return "first:all" where guards let the first lanes of a row store, and no others: numbers; "" elsewhere."""
    found = [c for guard in guards for c in evaluator.constraints(guard)]
    if len(found) != 1 or len(nest.lanes) != 1 or nest.count is None:
        return ""
    bound, is_equality = found[0]
    first = bound + evaluator.index(induction_variable(nest.lanes[0])) + 1
    return "" if is_equality or not first.is_Integer else f"{first}:{nest.count}"


def _extent(loop: ir.Operation, scope: _Scope) -> sympy.Expr:
    """Return the trip count of a loop that starts at 0 with step 1."""
    lower = loop.attributes["lowerBoundMap"].value
    if list(lower.results) != [ir.AffineConstantExpr.get(0)]:
        raise Unsupported(Reason.not_liftable, "a loop that does not start at 0")
    if len(loop.attributes["upperBoundMap"].value.results) != 1:
        raise Unsupported(Reason.not_liftable, "a loop with several upper bounds")
    segments = list(loop.attributes["operandSegmentSizes"])
    operands = list(loop.operands)[segments[0] : segments[0] + segments[1]]
    if any(operand not in scope.sizes for operand in operands):
        raise Unsupported(Reason.not_liftable, "the number of iterations of a loop depends on a loop around it")
    upper = apply_map(loop.attributes["upperBoundMap"].value, [scope.sizes[o] for o in operands])
    if upper[0].is_nonpositive:
        raise Unsupported(Reason.not_liftable, "a loop without iterations")
    return scope.extent(upper[0])
