"""Emits one nest of affine loops for one traced LoopBody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy
import torch

from ...reasons import InvariantError
from .. import dtypes
from ..mlir_runtime import ir
from .access import View
from .affine_expr import AffineBuilder, SymbolTable
from .elementwise import Elementwise, Typed
from .reduction_ops import ReductionEmitter
from .trace import Component, Condition, NestTrace, Step


@dataclass
class Memref:
    """A buffer as the function sees it: the view that names its subscripts, its dtype, the memref value."""

    view: View
    dtype: torch.dtype
    value: Any = None


class NestEmitter:
    """One nest: band loops over the iteration variables, reduction loops with `iter_args` inside.

    memrefs: by buffer name; symbols: the size arguments; ops: emits the arithmetic.
    """

    def __init__(self, trace: NestTrace, memrefs: dict[str, Memref], symbols: SymbolTable, ops: Elementwise):
        self.trace = trace
        self.memrefs = memrefs
        self.symbols = symbols
        self.ivs: dict[sympy.Symbol, Any] = {}
        self.values: dict[Step, Any] = {}
        self.maps: dict[tuple[sympy.Expr, ...], Any] = {}
        self.ops = ops
        self.reductions = ReductionEmitter(self)

    def emit(self, ip, attributes: dict[str, Any]) -> None:
        """Appends the nest at `ip`; its outermost loop gets the attributes."""
        self.ops.ip = ip
        outermost = self._open_band()
        for name, value in attributes.items():
            outermost.attributes[name] = value
        self.reductions.open(self.trace.reduce_vars)
        self._emit_steps(self.trace.steps)
        self.reductions.close()

    def loop(self, variable: sympy.Symbol, extent: sympy.Expr, iter_args=()):
        """Opens `affine.for variable = 0 to extent` and moves the insertion point into it."""
        operation = self._for_op(extent, list(iter_args))
        self.ivs[variable] = operation.body.arguments[0]
        self.ops.ip = ir.InsertionPoint(operation.body)
        return operation

    def _for_op(self, extent, iter_args):
        from mlir.dialects import affine

        if extent.is_Integer:
            return affine.AffineForOp(0, int(extent), iter_args=iter_args, ip=self.ops.ip)
        builder = AffineBuilder([])
        upper = builder.map([extent])
        operands = [self.symbols.value(s) for s in builder.symbols]
        return affine.AffineForOp(0, upper, iter_args=iter_args, upper_bound_operands=operands, ip=self.ops.ip)

    def _open_band(self):
        loops = []
        for variable, extent in self.trace.iter_vars:
            loops.append(self.loop(variable, extent))
            body_end = self.ops.create("affine.yield", [], [])
            self.ops.ip = ir.InsertionPoint(body_end)
        return loops[0].operation

    def _emit_steps(self, steps: list[Step]) -> None:
        for step in steps:
            self.values[step] = self._emit_step(step)

    def _emit_step(self, step: Step):
        special = {
            "load": self._load,
            "store": self._store,
            "index_expr": self._index_expr,
            "masked": self._masked,
            "reduction": self.reductions.reduce,
        }.get(step.op)
        if special is not None:
            return special(step)
        arguments = [self.value(a) for a in step.args]
        return self.ops.emit(step.op, arguments, step.kwargs)

    def value(self, argument):
        """A step's value; constants and dtypes stay what they are."""
        if isinstance(argument, Component):
            return self.values[argument.step][argument.position]
        if isinstance(argument, Step):
            return self.values[argument]
        if isinstance(argument, tuple):
            return tuple(self.value(a) for a in argument)
        return argument

    def affine_map(self, expressions: tuple[sympy.Expr, ...]):
        """(map, operands) over the induction variables that the expressions use, then their symbols."""
        if expressions not in self.maps:
            builder = self._builder(expressions)
            self.maps[expressions] = ir.AffineMapAttr.get(builder.map(list(expressions))), self._operands(builder)
        return self.maps[expressions]

    def _builder(self, expressions) -> AffineBuilder:
        used = set().union(*[e.free_symbols for e in expressions])
        return AffineBuilder([v for v in self.ivs if v in used])

    def _operands(self, builder: AffineBuilder) -> list[Any]:
        return [self.ivs[v] for v in builder.dims] + [self.symbols.value(s) for s in builder.symbols]

    def _location(self, step: Step):
        access = step.access
        if access is None:
            raise InvariantError(f"{step.op} without an access")
        memref = self.memrefs[access.buffer]
        affine_map, operands = self.affine_map(tuple(memref.view.subscripts[access]))
        return memref, [memref.value, *operands], {"map": affine_map}

    def _load(self, step: Step) -> Typed:
        memref, operands, attributes = self._location(step)
        element = self.ops.type(memref.dtype)
        result = self.ops.create("affine.load", operands, [element], attributes).result
        return self.ops.to_compute(Typed(result, memref.dtype))

    def _store(self, step: Step) -> None:
        memref, operands, attributes = self._location(step)
        stored = self.ops.to_storage(self.value(step.args[0]), memref.dtype)
        self.ops.create("affine.store", [stored, *operands], [], attributes)

    def _index_expr(self, step: Step) -> Typed:
        return self.index_value(*step.args)

    def index_value(self, expr: sympy.Expr, dtype: torch.dtype) -> Typed:
        """An affine expression of the iteration as a number; floats are converted from i64."""
        affine_map, operands = self.affine_map((expr,))
        applied = self.ops.create("affine.apply", operands, [ir.IndexType.get()], {"map": affine_map})
        integer = dtype if dtypes.kind(dtype) == "signed" else torch.int64
        cast = self.ops.create("arith.index_cast", [applied.result], [self.ops.type(integer)])
        return self.ops.convert(Typed(cast.result, integer), dtype)

    def _masked(self, step: Step) -> Typed:
        """`affine.if` with a result, whose type is known only when its region has been emitted."""
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

    def _guard(self, mask: Step, block, other, dtype: torch.dtype) -> Typed:
        """`affine.if` on a mask: the values of `block` under it, the constant `other` elsewhere."""
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

    def _condition_set(self, constraints: Condition):
        builder = self._builder(constraints)
        converted = [builder.convert(c) for c in constraints]
        integer_set = ir.IntegerSet.get(len(builder.dims), len(builder.symbols), converted, [False] * len(converted))
        return integer_set, self._operands(builder)
