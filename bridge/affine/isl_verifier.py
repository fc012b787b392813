"""A second opinion on what the passes made of a group, by isl: it shares no code with the first.

Access relations are read off the affine IR as text for islpy, which is the optional dependency `recheck`.  Checked are

- bands: no iteration of a band touches an element that another writes;
- lanes: below a band, a lane reads of what lanes write only what it has written itself, be several lanes one
  iteration (bridge/affine/isl_unrolled.py);
- writes: every element that was written before the passes is written after them, and just once;
- bounds: no access is outside its buffer.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any

from ..reasons import InvariantError
from .isl_unrolled import extent, find_pieces
from .mlir_runtime import ir

_READ, _WRITE = "affine.load", "affine.store"


@dataclass
class Access:
    """One load or store: the loops around it from the outside in, what they and the guards allow, its element.

    split: the loop of which an iteration does `count` pieces, where it is in one; pieces: those that it is in.
    """

    operation: Any
    memref: int
    writes: bool
    loops: list[Any]
    domain: list[str]
    subscripts: list[str]
    split: Any = None
    count: int = 1
    pieces: tuple[int, ...] = (0,)


@dataclass
class Accesses:
    """All accesses of a function, with names for its induction variables and sizes."""

    function: Any
    names: dict[Any, str] = field(default_factory=dict)
    parameters: list[str] = field(default_factory=list)
    found: list[Access] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.arguments = list(self.function.regions[0].blocks[0].arguments)
        for argument in self.arguments:
            if isinstance(argument.type, ir.IndexType):
                self.names[argument] = f"n{len(self.parameters)}"
                self.parameters.append(self.names[argument])
        self.function.walk(self._visit, ir.WalkOrder.PRE_ORDER)

    def _visit(self, operation: Any) -> Any:
        operation = operation.operation
        if operation.name == "affine.for":
            self.names[_variable(operation)] = f"i{len(self.names)}"
        if operation.name in (_READ, _WRITE):
            self._add(operation)
        return ir.WalkResult.ADVANCE

    def _add(self, operation: Any) -> None:
        writes = operation.name == _WRITE
        memref, *operands = list(operation.operands)[writes:]
        around = _ancestors(operation)
        loops = [op for op, _ in around if op.name == "affine.for"]
        domain = [text for op, inside in around for text in self._constraints(op, inside)]
        subscripts = self.apply(operation.attributes["map"], operands)
        self.found.append(Access(operation, self.arguments.index(memref), writes, loops, domain, subscripts))

    def _constraints(self, operation: Any, inside: Any) -> list[str]:
        """What a loop or a guard says of the iterations in its region `inside`."""
        if operation.name == "affine.for":
            return self.bounds(operation)
        operands = [self.expression(value) for value in operation.operands]
        holds = " and ".join(read_affine(operation.attributes["condition"], operands))
        return [f"({holds})"] if operation.regions[0] == inside else [f"not ({holds})"]

    def bounds(self, loop: Any) -> list[str]:
        lower, upper = loop.attributes["lowerBoundMap"], loop.attributes["upperBoundMap"]
        operands, first = list(loop.operands), lower.value.n_inputs
        name = self.names[_variable(loop)]
        low = self.apply(lower, operands[:first])
        high = self.apply(upper, operands[first : first + upper.value.n_inputs])
        return [*(f"{name} >= {text}" for text in low), *(f"{name} < {text}" for text in high)]

    def domains(self, loops: list[Any]) -> list[list[str]]:
        """The bounds of each loop, without its name."""
        return [[text.removeprefix(self.names[_variable(loop)]) for text in self.bounds(loop)] for loop in loops]

    def apply(self, affine_map: Any, operands: list[Any]) -> list[str]:
        return read_affine(affine_map, [self.expression(value) for value in operands])

    def expression(self, value: Any) -> str:
        """An index value as isl reads it."""
        if value in self.names:
            return self.names[value]
        operation = value.owner.operation if hasattr(value.owner, "operation") else value.owner
        if operation.name == "arith.constant":
            return str(ir.IntegerAttr(operation.attributes["value"]).value)
        if operation.name == "affine.apply":
            (text,) = self.apply(operation.attributes["map"], list(operation.operands))
            return text
        raise InvariantError(f"an index that is made by {operation.name}")


# ---------------------------------------------------------------------------------------------------------
# MLIR's affine text as isl's
# ---------------------------------------------------------------------------------------------------------

_ATTRIBUTE = re.compile(r"affine_(?:map|set)<\((.*?)\)(?:\[(.*?)\])? (?:->|:) \((.*)\)>$")


def read_affine(attribute: Any, operands: list[str]) -> list[str]:
    """The results of a map, or the constraints of a set, on operands; as isl writes them."""
    found = _ATTRIBUTE.match(str(attribute))
    if found is None:
        raise InvariantError(f"no affine map or set: {attribute}")
    dims, symbols, body = found.groups()
    names = [name.strip() for name in [*dims.split(","), *(symbols or "").split(",")] if name.strip()]
    values = dict(zip(names, operands, strict=True))
    python = body.replace("floordiv", "//").replace("ceildiv", "@").replace(" mod ", " % ").replace(" = ", " == ")
    expressions = ast.parse(f"({python},)", mode="eval").body if body else None
    return [_isl(expression, values) for expression in expressions.elts] if isinstance(expressions, ast.Tuple) else []


_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mod: "mod"}
_COMPARISONS = {ast.GtE: ">=", ast.Eq: "=", ast.LtE: "<="}


def _isl(node: Any, values: dict[str, str]) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Name):
        return f"({values[node.id]})"
    if isinstance(node, ast.UnaryOp):
        return f"-{_isl(node.operand, values)}"
    if isinstance(node, ast.Compare):
        right = _isl(node.comparators[0], values)
        return f"{_isl(node.left, values)} {_COMPARISONS[type(node.ops[0])]} {right}"
    left, right = _isl(node.left, values), _isl(node.right, values)
    if isinstance(node.op, ast.Mult):
        return f"({right} * {left})"  # MLIR has a constant on the right, isl wants a negative one on the left
    if isinstance(node.op, (ast.FloorDiv, ast.MatMult)):
        return f"{'floor' if isinstance(node.op, ast.FloorDiv) else 'ceil'}({left} / {right})"
    return f"({left} {_OPERATORS[type(node.op)]} {right})"


def _ancestors(operation: Any) -> list[tuple[Any, Any]]:
    """The loops and guards around an operation, from the outside in, with the region that it is in."""
    around, block = [], operation.block
    while block.owner.operation.name in ("affine.for", "affine.if"):
        owner = block.owner.operation
        around.append((owner, block.region))
        block = owner.block
    return around[::-1]


# ---------------------------------------------------------------------------------------------------------
# What is checked
# ---------------------------------------------------------------------------------------------------------


class Recheck:
    """Reads a module before the passes, and checks it after them."""

    def __init__(self, module: Any):
        import islpy

        self.isl = islpy
        with self._errors():
            self.written = self._written(Accesses(_function(module)))

    def verify(self, module: Any) -> list[str]:
        """What was shown, a line each; InvariantError for the first thing that does not hold."""
        with self._errors():
            return self._verify(module)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """What isl cannot read or decide is not proven."""
        try:
            yield
        except self.isl.Error as error:
            raise InvariantError(f"isl: {error}") from error

    def _verify(self, module: Any) -> list[str]:
        after = Accesses(_function(module))
        find_pieces(after.found, partial(self._is_shifted, after))
        lines = self._check_writes(after)
        lines += self._check_bounds(after)
        for root in _bands(after):
            own = [access for access in after.found if root in access.loops]
            lines.append(self._check_band(after, root, own))
            lines.append(self._check_lanes(after, root, own))
        return lines

    def relation(self, accesses: Accesses, access: Access, loops: list[Any]) -> Any:
        """Iterations of `loops` -> elements of the buffer; other loops around the access are left to exist."""
        kept = [accesses.names[_variable(loop)] for loop in loops]
        others = [n for n in (accesses.names[_variable(loop)] for loop in access.loops) if n not in kept]
        conditions = [*access.domain, *(b for loop in loops if loop not in access.loops for b in accesses.bounds(loop))]
        return self._map(accesses, access.subscripts, kept, conditions, others)

    def _map(
        self, accesses: Accesses, subscripts: list[str], inputs: list[str], conditions: list[str], others: list[str]
    ) -> Any:
        """`inputs` -> the element at `subscripts`, for some `others`."""
        results = [f"e{i}" for i in range(len(subscripts))]
        equalities = [f"{name} = {text}" for name, text in zip(results, subscripts, strict=True)]
        body = " and ".join([*conditions, *equalities]) or "true"
        if others:
            body = f"exists ({', '.join(others)}: {body})"
        sizes = ", ".join(accesses.parameters)
        return self.isl.Map(f"[{sizes}] -> {{ [{', '.join(inputs)}] -> [{', '.join(results)}] : {body} }}")

    def _is_shifted(self, accesses: Accesses, one: Access, other: Access, iterations: int) -> bool:
        """Whether an access touches what another touches so many iterations of the innermost loop later."""
        if one.loops != other.loops:
            return False
        bounds = accesses.bounds(one.loops[-1])
        *outer, name = (accesses.names[_variable(loop)] for loop in one.loops)
        relations = []
        for access, variable in ((one, f"({name} + {iterations})"), (other, name)):
            conditions = [text for text in access.domain if text not in bounds]
            moved = [re.sub(rf"\b{name}\b", variable, text) for text in [*conditions, *access.subscripts]]
            conditions, subscripts = moved[: len(conditions)], moved[len(conditions) :]
            relations.append(self._map(accesses, subscripts, [*outer, name], conditions, []))
        return relations[0].is_equal(relations[1])

    def _written(self, accesses: Accesses) -> dict[int, Any]:
        """The elements of each buffer that are written."""
        written: dict[int, Any] = {}
        for access in accesses.found:
            if access.writes:
                image = self.relation(accesses, access, access.loops).range()
                known = written.get(access.memref)
                written[access.memref] = image if known is None else known.union(image)
        return written

    def _check_writes(self, after: Accesses) -> list[str]:
        written = self._written(after)
        if written.keys() != self.written.keys():
            raise InvariantError("the passes changed which buffers are written")
        for memref, elements in written.items():
            if not elements.is_equal(self.written[memref]):
                raise InvariantError(f"the passes changed which elements of argument {memref} are written")
        for stores in _by_memref(access for access in after.found if access.writes).values():
            self._check_once(after, stores)
        return [f"writes: {len(written)} buffers, every element as before and once"]

    def _check_once(self, after: Accesses, stores: list[Access]) -> None:
        before: list[Any] = []
        for store in stores:
            relation = self.relation(after, store, store.loops)
            if not relation.is_injective():
                raise InvariantError(f"{_where(store)}: an element is written twice")
            elements = relation.range()
            if not all(elements.is_disjoint(others) for others in before):
                raise InvariantError(f"{_where(store)}: an element is written by two stores")
            before.append(elements)

    def _check_bounds(self, after: Accesses) -> list[str]:
        for access in after.found:
            shape = ir.MemRefType(after.arguments[access.memref].type).shape
            sizes = [size for size in shape if size >= 0]
            if len(sizes) != len(shape):
                continue
            names = [f"e{i}" for i in range(len(sizes))]
            box = " and ".join(f"0 <= {name} < {size}" for name, size in zip(names, sizes, strict=True)) or "true"
            inside = self.isl.Set(f"{{ [{', '.join(names)}] : {box} }}")
            elements = self.relation(after, access, access.loops).range()
            if self._depends_on_sizes(elements):
                continue  # inside by the guards of the graph, which are not in the IR
            if not elements.is_subset(inside.align_params(elements.get_space())):
                raise InvariantError(f"{_where(access)}: outside its buffer")
        return [f"bounds: {len(after.found)} accesses inside their buffers"]

    def _check_band(self, after: Accesses, root: Any, own: list[Access]) -> str:
        band, pairs = _band_loops(root), 0
        for accesses in _by_memref(own).values():
            relations = [(access, self.relation(after, access, band)) for access in accesses]
            for write, written in relations:
                for _, touched in relations if write.writes else ():
                    pairs += 1
                    self._check_same(written.apply_range(touched.reverse()), write)
        return f"band of {len(band)} loops: {pairs} pairs of accesses, no two iterations meet"

    def _check_same(self, meetings: Any, write: Access) -> None:
        identity = self.isl.Map.identity(meetings.get_space())
        if not meetings.is_subset(identity):
            raise InvariantError(f"{_where(write)}: two iterations of a band meet")

    def _check_lanes(self, after: Accesses, root: Any, own: list[Access]) -> str:
        """Lanes are numbered by their loops inside the band, which are no reductions."""
        band, pairs = _band_loops(root), 0
        for accesses in _by_memref(own).values():
            stores = [a for a in accesses if a.writes and _lanes(a, band)]
            for load in (a for a in accesses if not a.writes):
                for store in stores:
                    pairs += 1
                    self._check_lane(after, band, store, load)
        return f"lanes: {pairs} pairs of a store and a load, each in one lane"

    def _depends_on_sizes(self, elements: Any) -> bool:
        kind = self.isl.dim_type.param
        return elements.involves_dims(kind, 0, elements.dim(kind))

    def _check_lane(self, after: Accesses, band: list[Any], store: Access, load: Access) -> None:
        writer = _lanes(store, band)
        reader = _lanes(load, band) + [loop for loop in load.loops if _carries(loop)]
        if writer and after.domains(writer) == after.domains(reader) and store.count == load.count:
            written, read = self._by_loops(after, band, store, writer), self._by_loops(after, band, load, reader)
            self._check_same(written.apply_range(read.reverse()), load)
            return
        count, lanes = _volume(store, writer), _volume(load, reader)
        if count is None or lanes is None or not reader or lanes % count:
            raise InvariantError(f"{_where(load)}: its lanes are not those of the store")
        written = self._lane_relation(after, band, store, writer, 1)
        read = self._lane_relation(after, band, load, reader, lanes // count)
        self._check_same(written.apply_range(read.reverse()), load)

    def _by_loops(self, after: Accesses, band: list[Any], access: Access, lanes: list[Any]) -> Any:
        """(band iteration, iteration of each of `lanes`, had they no pieces) -> elements."""
        outer, inner = ([after.names[_variable(loop)] for loop in loops] for loops in (band, lanes))
        others = [n for n in (after.names[_variable(loop)] for loop in access.loops) if n not in outer]
        counted = [f"lane{i}" for i in range(len(inner))]
        maps = []
        for piece in access.pieces:
            numbers = [_in_piece(name, loop, access, piece) for name, loop in zip(inner, lanes, strict=True)]
            conditions = [f"{lane} = {number}" for lane, number in zip(counted, numbers, strict=True)]
            conditions = [*access.domain, *conditions]
            maps.append(self._map(after, access.subscripts, [*outer, *counted], conditions, others))
        return functools.reduce(lambda one, other: one.union(other), maps)

    def _lane_relation(self, after: Accesses, band: list[Any], access: Access, lanes: list[Any], share: int) -> Any:
        """(band iteration, lane) -> elements; `share` lanes of the access are one."""
        outer = [after.names[_variable(loop)] for loop in band]
        others = [after.names[_variable(loop)] for loop in access.loops if loop not in band]
        maps = []
        for piece in access.pieces:
            number = "0"
            for loop in lanes:
                own = _in_piece(after.names[_variable(loop)], loop, access, piece)
                number = f"({number}) * {_volume(access, [loop])} + {own}"
            conditions = [*access.domain, f"lane = floor(({number}) / {share})"]
            maps.append(self._map(after, access.subscripts, [*outer, "lane"], conditions, others))
        return functools.reduce(lambda one, other: one.union(other), maps)


def _function(module: Any) -> Any:
    return module.body.operations[0].operation


def _bands(accesses: Accesses) -> list[Any]:
    block = accesses.function.regions[0].blocks[0]
    return [op.operation for op in block.operations if "bridge.band" in op.operation.attributes]


def _band_loops(root: Any) -> list[Any]:
    loops = [root]
    while True:
        inner = [op.operation for op in loops[-1].regions[0].blocks[0].operations]
        deeper = [op for op in inner if op.name == "affine.for" and "bridge.band" in op.attributes]
        if not deeper:
            return loops
        loops.append(deeper[0])


def _variable(loop: Any) -> Any:
    return loop.regions[0].blocks[0].arguments[0]


def _carries(loop: Any) -> bool:
    return len(loop.results) > 0


def _lanes(access: Access, band: list[Any]) -> list[Any]:
    return [loop for loop in access.loops if loop not in band and not _carries(loop)]


def _in_piece(name: str, loop: Any, access: Access, piece: int) -> str:
    """The iteration of a loop that an access would be in if the loop had no pieces."""
    return f"({name} + {piece * (extent(loop) or 0)})" if _is_split(loop, access) else name


def _is_split(loop: Any, access: Access) -> bool:
    return access.split is not None and loop == access.split


def _volume(access: Access, loops: list[Any]) -> int | None:
    """Iterations of loops around an access, had they no pieces; None where an extent is not constant."""
    extents = [size for loop in loops if (size := extent(loop)) is not None]
    pieces = access.count if any(_is_split(loop, access) for loop in loops) else 1
    return pieces * prod(extents) if len(extents) == len(loops) else None


def _by_memref(accesses: Iterable[Access]) -> dict[int, list[Access]]:
    found: dict[int, list[Access]] = {}
    for access in accesses:
        found.setdefault(access.memref, []).append(access)
    return found


def _where(access: Access) -> str:
    return str(access.operation.location)
