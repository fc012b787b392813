"""Emits one nest of affine loops for one traced LoopBody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy
import torch

from .. import dtypes
from ..mlir_runtime import ir
from ..reasons import Reason, Unsupported
from .access import View
from .affine_expr import AffineBuilder
from .elementwise import Elementwise, Typed
from .reductions import ReductionEmitter
from .trace import Component, NestTrace, Step


@dataclass
class Memref:
    """A buffer as the function sees it: the view that names its subscripts, its dtype, the memref value."""

    view: View
    dtype: torch.dtype
    value: Any = None


class NestEmitter:
    """One nest: band loops over the iteration variables, reduction loops with `iter_args` inside.

    memrefs: by buffer name; symbols: value of every size symbol; rounds: whether the target's codegen
    rounds at a conversion to a 16-bit float (C++ does, Triton keeps float32 until the store).
    """

    def __init__(self, trace: NestTrace, memrefs: dict[str, Memref], symbols: dict[sympy.Expr, Any], rounds: bool):
        self.trace = trace
        self.memrefs = memrefs
        self.symbols = symbols
        self.ivs: dict[sympy.Symbol, Any] = {}
        self.values: dict[Step, Any] = {}
        self.ops = Elementwise(rounds)
        self.reductions = ReductionEmitter(self)

    def emit(self, ip, node_attr: dict[str, Any]):
        """Appends the nest at `ip` and returns its outermost operation's block position owner."""
        self.ops.ip = ip
        outermost = self._open_band(node_attr)
        self.reductions.open(self.trace.reduce_vars)
        self._emit_steps(self.trace.steps)
        self.reductions.close()
        return outermost

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
        operands = [self.symbols[s] for s in builder.symbols]
        return affine.AffineForOp(0, upper, iter_args=iter_args, upper_bound_operands=operands, ip=self.ops.ip)

    def _open_band(self, attributes):
        outermost = None
        for variable, extent in self.trace.iter_vars or [(sympy.Symbol("bridge_iv_unit"), sympy.Integer(1))]:
            operation = self.loop(variable, extent)
            if outermost is None:
                outermost = operation
                for name, value in attributes.items():
                    operation.operation.attributes[name] = value
            body_end = self.ops.create("affine.yield", [], [])
            self.ops.ip = ir.InsertionPoint(body_end)
        return outermost

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

    def affine_map(self, expressions: list[sympy.Expr]):
        """(map, operands) over the induction variables that the expressions use, then their symbols."""
        used = set().union(*[e.free_symbols for e in expressions]) if expressions else set()
        variables = [v for v in self.ivs if v in used]
        builder = AffineBuilder(variables)
        affine_map = builder.map(expressions)
        return affine_map, [self.ivs[v] for v in variables] + [self.symbols[s] for s in builder.symbols]

    def _subscripts(self, name: str, index: sympy.Expr):
        memref = self.memrefs[name]
        return memref, *self.affine_map(memref.view.subscripts[index])

    def _load(self, step: Step) -> Typed:
        memref, affine_map, operands = self._subscripts(*step.args)
        element = ir.Type.parse(dtypes.type_name(memref.dtype))
        attributes = {"map": ir.AffineMapAttr.get(affine_map)}
        result = self.ops.create("affine.load", [memref.value, *operands], [element], attributes).result
        return self.ops.to_compute(Typed(result, memref.dtype))

    def _store(self, step: Step) -> None:
        name, index, value = step.args
        memref, affine_map, operands = self._subscripts(name, index)
        stored = self.ops.to_storage(self.value(value), memref.dtype)
        attributes = {"map": ir.AffineMapAttr.get(affine_map)}
        self.ops.create("affine.store", [stored, memref.value, *operands], [], attributes)

    def _index_expr(self, step: Step) -> Typed:
        expr, dtype = step.args
        return self.index_value(sympy.sympify(expr), dtype)

    def index_value(self, expr: sympy.Expr, dtype: torch.dtype) -> Typed:
        """An affine expression of the iteration as a number; floats are converted from i64."""
        affine_map, operands = self.affine_map([expr])
        applied = self.ops.create(
            "affine.apply", operands, [ir.IndexType.get()], {"map": ir.AffineMapAttr.get(affine_map)}
        )
        integer = dtype if dtypes.kind(dtype) == "signed" else torch.int64
        cast = self.ops.create("arith.index_cast", [applied.result], [ir.Type.parse(dtypes.type_name(integer))])
        return self.ops.convert(Typed(cast.result, integer), dtype)

    def _masked(self, step: Step) -> Typed:
        mask, result, other = step.args
        affine_set, operands = self._condition_set(mask)
        kind = _result_dtype(result, self)
        outer = self.ops.ip
        operation, dtype = self._open_if(affine_set, operands, kind)
        self.ops.ip = ir.InsertionPoint(operation.regions[0].blocks[0])
        self._emit_steps(step.region)
        inner = self.value(result)
        self.ops.create("affine.yield", [self.ops.convert(inner, dtype).value], [])
        self.ops.ip = ir.InsertionPoint(operation.regions[1].blocks[0])
        self.ops.create("affine.yield", [self.ops.constant(other, dtype).value], [])
        self.ops.ip = outer
        return Typed(operation.results[0], dtype)

    def _open_if(self, affine_set, operands, dtype):
        compute = self.ops.compute_dtype(dtype)
        operation = self.ops.create(
            "affine.if",
            operands,
            [ir.Type.parse(dtypes.type_name(compute))],
            {"condition": ir.IntegerSetAttr.get(affine_set)},
            regions=2,
        )
        for region in operation.regions:
            region.blocks.append()
        return operation, compute

    def _condition_set(self, mask: Step):
        if mask.condition is None:
            raise Unsupported(Reason.non_affine_mask, f"{self.trace.name}: the mask depends on data")
        constraints = list(mask.condition)
        used = set().union(*[c.free_symbols for c in constraints])
        variables = [v for v in self.ivs if v in used]
        builder = AffineBuilder(variables)
        converted = [builder.convert(c) for c in constraints]
        affine_set = ir.IntegerSet.get(len(variables), len(builder.symbols), converted, [False] * len(converted))
        return affine_set, [self.ivs[v] for v in variables] + [self.symbols[s] for s in builder.symbols]


def _result_dtype(result, emitter: NestEmitter) -> torch.dtype:
    """The dtype of a masked region's result, found from its operations before they are emitted."""
    from .infer import step_dtype

    return step_dtype(result, emitter)
