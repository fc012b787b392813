"""Read the loads and stores of a function as isl's relations: what iterations touch which elements of a buffer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import islpy as isl

from ..reasons import InvariantError
from .isl_relations import Condition, Expression, apply_map, apply_set, conjunction, constant, make_relation, variable
from .mlir_runtime import induction_variable, ir

_READ, _WRITE, _GATHER = "affine.load", "affine.store", "bridge.gather"


@dataclass
class AccessRelation:
    """Hold one load or store.

    memref: the number of the argument; loops: those around it, outermost first; domain: what each loop and guard
    around it says of the iteration; subscripts: of the element.
    unrolled: the loop around it that was unrolled `factor` times and jammed, if there is one; copies: the copies of
    the body that the access belongs to.
    """

    operation: ir.Operation
    memref: int
    writes: bool
    loops: list[ir.Operation]
    domain: list[tuple[ir.Operation, Condition]]
    subscripts: list[Expression]
    unrolled: ir.Operation | None = None
    factor: int = 1
    copies: tuple[int, ...] = (0,)

    @property
    def conditions(self) -> list[Condition]:
        """Return the conditions under which the access executes."""
        return [condition for _, condition in self.domain]


@dataclass
class FunctionAccesses:
    """Hold all accesses of a function, with names for its induction variables and sizes.

    gathered: the numbers of the arguments that are read at places which depend on data.
    """

    function: ir.Operation
    names: dict[ir.Value, str] = field(default_factory=dict)
    sizes: list[str] = field(default_factory=list)
    found: list[AccessRelation] = field(default_factory=list)
    gathered: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Read the function."""
        self.arguments = list(self.function.regions[0].blocks[0].arguments)
        for argument in self.arguments:
            if isinstance(argument.type, ir.IndexType):
                self.names[argument] = f"n{len(self.sizes)}"
                self.sizes.append(self.names[argument])
        for operation in _operations(self.function):
            self._visit(operation)

    def _visit(self, operation: ir.Operation) -> None:
        """Name the variable of a loop, and keep an access."""
        if operation.name == "affine.for":
            self.names[induction_variable(operation)] = f"i{len(self.names)}"
        if operation.name in (_READ, _WRITE):
            self._add(operation)
        if operation.name == _GATHER:
            self.gathered.add(self.arguments.index(operation.operands[0]))

    def _add(self, operation: ir.Operation) -> None:
        """Keep one access."""
        writes = operation.name == _WRITE
        memref, *operands = list(operation.operands)[writes:]
        if memref not in self.arguments:
            raise InvariantError(f"{operation.name} of a memref that is no argument")
        around = _ancestors(operation)
        loops = [op for op, _ in around if op.name == "affine.for"]
        domain = [(op, self._condition(op, inside)) for op, inside in around]
        subscripts = self._apply(operation.attributes["map"], operands)
        self.found.append(AccessRelation(operation, self.arguments.index(memref), writes, loops, domain, subscripts))

    def _condition(self, operation: ir.Operation, inside: ir.Region) -> Condition:
        """Return what a loop or a guard says of the iterations in its region `inside`."""
        if operation.name == "affine.for":
            return self.bounds(operation)
        operands = [self._expression(value) for value in operation.operands]
        holds = apply_set(operation.attributes["condition"], operands)
        return holds if operation.regions[0] == inside else holds.complement()

    def name(self, loop: ir.Operation) -> str:
        """Return the name of a loop's variable."""
        return self.names[induction_variable(loop)]

    def bounds(self, loop: ir.Operation) -> Condition:
        """Return the condition that the variable of a loop is in its bounds."""
        lower, upper = loop.attributes["lowerBoundMap"], loop.attributes["upperBoundMap"]
        operands, first = list(loop.operands), lower.value.n_inputs
        own = variable(self.name(loop))
        low = self._apply(lower, operands[:first])
        high = self._apply(upper, operands[first : first + upper.value.n_inputs])
        return conjunction([*(own.ge_set(bound) for bound in low), *(own.lt_set(bound) for bound in high)])

    def have_equal_bounds(self, one: list[ir.Operation], other: list[ir.Operation]) -> bool:
        """Return True if two lists have as many loops, and those at one position the same bounds."""
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(self._iterations(a).is_equal(self._iterations(b)) for a, b in pairs)

    def _iterations(self, loop: ir.Operation) -> isl.Map:
        """Return the iterations of a loop without the name of its variable."""
        name = self.name(loop)
        return make_relation(self.bounds(loop), [other for other in self.names.values() if other != name], [], [name])

    def relation(self, access: AccessRelation, loops: list[ir.Operation]) -> isl.Map:
        """Return iterations of `loops` -> elements of the buffer; other loops around the access are left to exist."""
        outside = [self.bounds(loop) for loop in loops if loop not in access.loops]
        return self.relate([self.name(loop) for loop in loops], access, [*access.conditions, *outside])

    def relate(self, inputs: list[str], access: AccessRelation, conditions: Iterable[Condition]) -> isl.Map:
        """Return `inputs` -> the element of an access, under conditions; variables that are no inputs exist."""
        outputs = [f"e{i}" for i in range(len(access.subscripts))]
        pairs = zip(outputs, access.subscripts, strict=True)
        element = [variable(name).eq_set(subscript) for name, subscript in pairs]
        return make_relation(conjunction([*conditions, *element]), self.sizes, inputs, outputs)

    def is_shifted(self, one: AccessRelation, other: AccessRelation, iterations: int) -> bool:
        """Return True if `one`, so many iterations of the innermost loop later, touches what `other` touches."""
        if one.loops != other.loops:
            return False
        innermost = one.loops[-1]
        *outer, name = map(self.name, one.loops)
        relations = []
        for access, offset in ((one, iterations), (other, 0)):
            earlier = variable("earlier").eq_set(variable(name).sub(constant(offset)))
            conditions = [condition for around, condition in access.domain if around != innermost]
            relations.append(self.relate([*outer, "earlier"], access, [*conditions, earlier]))
        return relations[0].is_equal(relations[1])

    def _apply(self, affine_map: ir.AffineMapAttr, operands: list[ir.Value]) -> list[Expression]:
        """Return the results of a map on index values."""
        return apply_map(affine_map.value, [self._expression(value) for value in operands])

    def _expression(self, value: ir.Value) -> Expression:
        """Return an index value as an expression; InvariantError for one that no affine operation makes."""
        if value in self.names:
            return variable(self.names[value])
        operation = value.owner.operation if hasattr(value.owner, "operation") else value.owner
        if operation.name == "arith.constant":
            return constant(ir.IntegerAttr(operation.attributes["value"]).value)
        if operation.name == "affine.apply":
            (result,) = self._apply(operation.attributes["map"], list(operation.operands))
            return result
        raise InvariantError(f"an index that is made by {operation.name}")


def _operations(root: ir.Operation) -> list[ir.Operation]:
    """Return all operations inside another, outer ones first.

    They are looked at after the walk: MLIR makes a RuntimeError of each exception inside of it.
    """
    found: list[ir.Operation] = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        """Keep the operation."""
        found.append(operation.operation)
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _ancestors(operation: ir.Operation) -> list[tuple[ir.Operation, ir.Region]]:
    """Return the loops and guards around an operation, outermost first, with the region that it is in."""
    around, block = [], operation.block
    while block.owner.operation.name in ("affine.for", "affine.if"):
        owner = block.owner.operation
        around.append((owner, block.region))
        block = owner.block
    return around[::-1]


def group_by_memref(accesses: Iterable[AccessRelation]) -> dict[int, list[AccessRelation]]:
    """Return the accesses to each argument."""
    found: dict[int, list[AccessRelation]] = {}
    for access in accesses:
        found.setdefault(access.memref, []).append(access)
    return found
