"""Emits one nest of affine loops for one traced LoopBody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import sympy
import torch

from ...reasons import InvariantError
from .. import dtypes
from ..mlir_runtime import ir
from .access import View, expand, terms
from .affine_expr import AffineBuilder, SymbolTable
from .cyclic_shifts import ShiftedSubscripts
from .elementwise import Elementwise, Number, Typed
from .gather import emit_gather
from .reduction_ops import ReductionEmitter
from .trace import Component, Condition, NestTrace, Step

#: What a step gives: nothing for a store, several values for some reductions.
Emitted: TypeAlias = "Typed | tuple[Typed, ...] | None"


@dataclass
class Memref:
    """Hold a buffer as the function sees it: the view that names its subscripts, its dtype, the memref value.

    shifted: the subscripts that are shifted in memory.
    """

    view: View
    dtype: torch.dtype
    value: ir.Value | None = None
    shifted: tuple[ShiftedSubscripts, ...] = ()


class NestEmitter:
    """Emit one nest: band loops over the iteration variables, reduction loops with `iter_args` inside.

    memrefs: by buffer name; symbols: the size arguments; ops: emits the arithmetic.
    """

    def __init__(self, trace: NestTrace, memrefs: dict[str, Memref], symbols: SymbolTable, ops: Elementwise):
        """Start without loops."""
        self.trace = trace
        self.memrefs = memrefs
        self.symbols = symbols
        self.ivs: dict[sympy.Symbol, ir.Value] = {}
        self.numbers: dict[sympy.Symbol, sympy.Integer] = {}
        self.values: dict[Step, Emitted] = {}
        self.maps: dict[tuple[sympy.Expr, ...], tuple[ir.AffineMapAttr, list[ir.Value]]] = {}
        self.ops = ops
        self.reductions = ReductionEmitter(self)

    def emit(self, ip: ir.InsertionPoint, attributes: dict[str, ir.Attribute]) -> None:
        """Append the nest at `ip`; its outermost loop gets the attributes."""
        self.ops.ip = ip
        outermost = self._open_band()
        for name, value in attributes.items():
            outermost.attributes[name] = value
        if self.trace.unrolled is None:
            self._emit_body()
            return
        variable, count = self.trace.unrolled
        innermost = self.ops.ip
        for number in range(int(count)):
            self.ops.ip, self.values, self.maps = innermost, {}, {}
            self.numbers = {variable: sympy.Integer(number)}
            self.reductions = ReductionEmitter(self)
            self._emit_body()

    def _emit_body(self) -> None:
        """Emit what one iteration of the band does."""
        self.reductions.open(self.trace.reduce_vars)
        self._emit_steps(self.trace.steps)
        self.reductions.close()

    def loop(self, variable: sympy.Symbol, extent: sympy.Expr, iter_args: Sequence[ir.Value] = ()) -> ir.OpView:
        """Open `affine.for variable = 0 to extent` and move the insertion point into it."""
        operation = self._for_op(extent, list(iter_args))
        self.ivs[variable] = operation.body.arguments[0]
        self.ops.ip = ir.InsertionPoint(operation.body)
        return operation

    def _for_op(self, extent: sympy.Expr, iter_args: list[ir.Value]) -> ir.OpView:
        """Create the loop at the insertion point."""
        from mlir.dialects import affine  # loads MLIR

        if extent.is_Integer:
            return affine.AffineForOp(0, int(extent), iter_args=iter_args, ip=self.ops.ip)
        builder = AffineBuilder([])
        upper = builder.map([extent])
        operands = [self.symbols.value(s) for s in builder.symbols]
        return affine.AffineForOp(0, upper, iter_args=iter_args, upper_bound_operands=operands, ip=self.ops.ip)

    def _open_band(self) -> ir.Operation:
        """Open the band loops and return the outermost."""
        loops = []
        for variable, extent in self.trace.iter_vars:
            loops.append(self.loop(variable, extent))
            body_end = self.ops.create("affine.yield", [], [])
            self.ops.ip = ir.InsertionPoint(body_end)
        return loops[0].operation

    def _emit_steps(self, steps: list[Step]) -> None:
        """Emit steps in order and keep their values."""
        for step in steps:
            self.values[step] = self._emit_step(step)

    def _emit_step(self, step: Step) -> Emitted:
        """Emit one step."""
        special = {
            "load": self._load,
            "gather": self._gather,
            "store": self._store,
            "index_expr": self._index_expr,
            "masked": self._masked,
            "reduction": self.reductions.reduce,
        }.get(step.op)
        if special is not None:
            return special(step)
        arguments = [self.value(a) for a in step.args]
        return self.ops.emit(step.op, arguments, step.kwargs)

    def value(self, argument: object) -> Any:
        """Return a step's value; constants and dtypes stay what they are."""
        if isinstance(argument, Component):
            return self.components(argument.step)[argument.position]
        if isinstance(argument, Step):
            return self.values[argument]
        if isinstance(argument, tuple):
            return tuple(self.value(a) for a in argument)
        return argument

    def has_value(self, step: Step) -> bool:
        """Return True if a step has been emitted."""
        return step in self.values

    def components(self, step: Step) -> tuple[Typed, ...]:
        """Return the values of a step that has several."""
        values = self.values[step]
        if not isinstance(values, tuple):
            raise InvariantError(f"{step.op} has no components")
        return values

    def affine_map(self, expressions: tuple[sympy.Expr, ...]) -> tuple[ir.AffineMapAttr, list[ir.Value]]:
        """Return (map, operands) over the induction variables that the expressions use, then their symbols."""
        expressions = self._with_numbers(expressions)
        if expressions not in self.maps:
            builder = self._builder(expressions)
            self.maps[expressions] = ir.AffineMapAttr.get(builder.map(list(expressions))), self._operands(builder)
        return self.maps[expressions]

    def _with_numbers(self, expressions: tuple[sympy.Expr, ...]) -> tuple[sympy.Expr, ...]:
        """Return expressions of the iteration with the value that an unrolled loop's variable has by now."""
        return tuple(expand(e.xreplace(self.numbers)) for e in expressions) if self.numbers else expressions

    def _builder(self, expressions: Sequence[sympy.Expr]) -> AffineBuilder:
        """Return a builder over the induction variables that the expressions use."""
        used = set().union(*[e.free_symbols for e in expressions])
        return AffineBuilder([v for v in self.ivs if v in used])

    def _operands(self, builder: AffineBuilder) -> list[ir.Value]:
        """Return the values of the dimensions and symbols of a builder."""
        return [self.ivs[v] for v in builder.dims] + [self.symbols.value(s) for s in builder.symbols]

    def _location(self, step: Step) -> tuple[Memref, list[ir.Value], dict[str, ir.Attribute]]:
        """Return (memref, operands, attributes) of a load or a store."""
        access = step.access
        if access is None:
            raise InvariantError(f"{step.op} without an access")
        memref = self.memrefs[access.buffer]
        affine_map, operands = self.affine_map(tuple(memref.view.subscripts[access]))
        return memref, [memref.value, *operands], {"map": affine_map}

    def _load(self, step: Step) -> Typed:
        """Emit `affine.load`; the value is converted to the dtype to compute in."""
        memref, operands, attributes = self._location(step)
        element = self.ops.type(memref.dtype)
        result = self.ops.create("affine.load", operands, [element], attributes).result
        return self.ops.to_compute(Typed(result, memref.dtype))

    def _gather(self, step: Step) -> Typed:
        """Emit a load whose place depends on data."""
        if step.gather is None:
            raise InvariantError("a gather without a place")
        memref = self.memrefs[step.gather.buffer]
        element = emit_gather(self, step.gather, memref.value, self.ops.type(memref.dtype))
        return self.ops.to_compute(Typed(element, memref.dtype))

    def _store(self, step: Step) -> None:
        """Emit `affine.store` of a value, rounded as the buffer keeps it."""
        memref, operands, attributes = self._location(step)
        stored = self.ops.to_storage(self.value(step.args[0]), memref.dtype)
        self.ops.create("affine.store", [stored, *operands], [], attributes)

    def _index_expr(self, step: Step) -> Typed:
        """Emit an index as a number."""
        return self.index_value(*step.args)

    def index_value(self, expr: sympy.Expr, dtype: torch.dtype) -> Typed:
        """Emit an expression of the iteration as a number; floats are converted from i64."""
        integer = dtype if dtypes.kind(dtype) == "signed" else torch.int64
        cast = self.ops.create("arith.index_cast", [self.index(expr)], [self.ops.type(integer)])
        return self.ops.convert(Typed(cast.result, integer), dtype)

    def index(self, expr: sympy.Expr) -> ir.Value:
        """Emit an index: an affine map, and products of sizes and variables, which no map has."""
        products = [(size, atom) for size, atom in terms(expr) if atom != 1 and not size.is_Integer]
        total = self._applied(expand(expr - sum((size * atom for size, atom in products), sympy.Integer(0))))
        for factors in products:
            product = self._arithmetic("arith.muli", *map(self._applied, factors))
            total = self._arithmetic("arith.addi", total, product)
        return total

    def _applied(self, expr: sympy.Expr) -> ir.Value:
        """Emit an affine expression of the iteration."""
        affine_map, operands = self.affine_map((expr,))
        return self.ops.create("affine.apply", operands, [ir.IndexType.get()], {"map": affine_map}).result

    def _arithmetic(self, name: str, one: ir.Value, other: ir.Value) -> ir.Value:
        """Emit an operation on two indices."""
        return self.ops.create(name, [one, other], [ir.IndexType.get()]).result

    def _masked(self, step: Step) -> Typed:
        """Emit `affine.if` with a result, whose type is known only when its region has been emitted."""
        mask, result, other = step.args
        outer = self.ops.ip
        # No part of the module: holds the region until the operation with the right result type exists.
        holder = ir.Operation.create("builtin.module", regions=1, ip=False)
        try:
            block = holder.regions[0].blocks.append()
            self.ops.ip = ir.InsertionPoint(block)
            self._emit_steps(step.region or [])
            inner = self.value(result)
            self.ops.create("affine.yield", [inner.value], [])
            self.ops.ip = outer
            return self._guard(mask, block, other, inner.dtype)
        finally:
            holder.erase()  # it uses values of the module: a refusal must not leave it behind

    def _guard(self, mask: Step, block: ir.Block, other: Number, dtype: torch.dtype) -> Typed:
        """Emit `affine.if` on a mask: the values of `block` under it, the constant `other` elsewhere."""
        if mask.condition is None:
            raise InvariantError(f"a guard by {mask.op}, which is no condition")
        condition, operands = self._condition_set(mask.condition)
        outer = self.ops.ip
        attributes = {"condition": ir.IntegerSetAttr.get(condition)}
        operation = self.ops.create("affine.if", operands, [self.ops.type(dtype)], attributes, regions=2)
        block.append_to(operation.regions[0])
        self.ops.ip = ir.InsertionPoint(operation.regions[1].blocks.append())
        self.ops.create("affine.yield", [self.ops.constant(other, dtype).value], [])
        self.ops.ip = outer
        return Typed(operation.results[0], dtype)

    def _condition_set(self, constraints: Condition) -> tuple[ir.IntegerSet, list[ir.Value]]:
        """Return (set, operands) of constraints that are each at least zero."""
        constraints = self._with_numbers(constraints)
        builder = self._builder(constraints)
        converted = [builder.convert(c) for c in constraints]
        integer_set = ir.IntegerSet.get(len(builder.dims), len(builder.symbols), converted, [False] * len(converted))
        return integer_set, self._operands(builder)
