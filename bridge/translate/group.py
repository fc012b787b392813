"""A group of scheduler nodes as one `func.func` of affine nests, in program order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import sympy
import torch

from .. import dtypes
from .. import inductor_compat as inductor
from ..mlir_runtime import context, ir
from ..reasons import Reason, Unsupported
from .access import Access, Prover, View, delinearise
from .affine_expr import size_symbols
from .emit import Memref, NestEmitter
from .trace import NestTrace, trace_node


@dataclass(frozen=True)
class NodeSource:
    """What translation needs to know of one scheduler node.

    name: Inductor's name of the node; kernel: which of the group's kernels Inductor put it into;
    location: user's (file, line), or None.
    """

    name: str
    body: Any
    sizes: tuple[list[sympy.Expr], list[sympy.Expr]]
    kernel: int
    location: tuple[str, int] | None = None


@dataclass
class Translation:
    """The affine module of a group and the tables that the lift reads it back with."""

    module: Any
    traces: list[NestTrace]
    memrefs: dict[str, Memref]
    symbols: list[sympy.Expr] = field(default_factory=list)


def trace_group(sources: list[NodeSource]) -> list[NestTrace]:
    return [trace_node(s.name, s.body, s.sizes) for s in sources]


def translate_group(name: str, sources: list[NodeSource], traces: list[NestTrace], target: GroupTarget) -> Translation:
    """Builds the module; raises Unsupported with the first reason that rules the group out."""
    memrefs = _memrefs(traces, target)
    symbols = _symbols(traces, memrefs)
    with context(), ir.Location.name(name):
        module = ir.Module.create()
        entry = _function(module, name, memrefs, symbols)
        for source, trace in zip(sources, traces, strict=True):
            _emit_nest(entry, source, trace, memrefs, symbols, target.rounds)
        with ir.InsertionPoint(entry):
            ir.Operation.create("func.return", results=[], operands=[])
        module.operation.verify()
    return Translation(module, traces, memrefs, list(symbols))


@dataclass(frozen=True)
class GroupTarget:
    """Facts about the graph: buffer dtypes and storage sizes (elements), provable size relations, rounding."""

    dtype_of: Any
    numel_of: Any
    prover: Prover
    rounds: bool


def _memrefs(traces: list[NestTrace], target: GroupTarget) -> dict[str, Memref]:
    by_buffer: dict[str, list[Access]] = {}
    for trace in traces:
        for access in trace.accesses:
            by_buffer.setdefault(access.buffer, []).append(access)
    return {name: _memref(name, accesses, target) for name, accesses in by_buffer.items()}


def _memref(name: str, accesses: list[Access], target: GroupTarget) -> Memref:
    dtype = target.dtype_of(name)
    dtypes.type_name(dtype)
    return Memref(delinearise(name, accesses, target.numel_of(name), target.prover), dtype)


def _symbols(traces: list[NestTrace], memrefs: dict[str, Memref]) -> dict[sympy.Expr, Any]:
    """Every size symbol that a bound, a subscript, an index expression or a guard mentions."""
    expressions = [extent for t in traces for _, extent in t.iter_vars + t.reduce_vars]
    expressions += [s for m in memrefs.values() for subs in m.view.subscripts.values() for s in subs]
    for trace in traces:
        expressions += _step_expressions(trace.steps)
    found: dict[sympy.Expr, Any] = {}
    for expression in expressions:
        found.update(dict.fromkeys(size_symbols(expression)))
    return found


def _step_expressions(steps) -> list[sympy.Expr]:
    found: list[sympy.Expr] = []
    for step in steps:
        if step.op == "index_expr":
            found.append(step.index)
        if step.condition is not None:
            found += step.condition
        if step.region is not None:
            found += _step_expressions(step.region)
    return found


def memref_type(view: View, dtype: torch.dtype):
    """`memref<?x8192xbf16>`: a static extent where the size is a number."""
    extents = [str(s) if s.is_Integer else "?" for s in view.sizes]
    return ir.Type.parse(f"memref<{'x'.join([*extents, dtypes.type_name(dtype)])}>")


def _function(module, name: str, memrefs: dict[str, Memref], symbols: dict[sympy.Expr, Any]):
    """Appends the function, binds memrefs and symbols to its arguments, and returns its entry block."""
    types = [memref_type(m.view, m.dtype) for m in memrefs.values()] + [ir.IndexType.get()] * len(symbols)
    labels = [("bridge.buffer", n) for n in memrefs] + [("bridge.size", str(s)) for s in symbols]
    function_type = ir.FunctionType.get(types, [])
    attributes = {
        "sym_name": ir.StringAttr.get(name),
        "function_type": ir.TypeAttr.get(function_type),
        "arg_attrs": ir.ArrayAttr.get([ir.DictAttr.get({k: ir.StringAttr.get(v)}) for k, v in labels]),
    }
    with ir.InsertionPoint(module.body):
        function = ir.Operation.create("func.func", results=[], operands=[], attributes=attributes, regions=1)
    entry = function.regions[0].blocks.append(*types)
    for memref, argument in zip(memrefs.values(), entry.arguments, strict=False):
        memref.value = argument
    for symbol, argument in zip(symbols, list(entry.arguments)[len(memrefs) :], strict=True):
        symbols[symbol] = argument
    return entry


def _emit_nest(entry, source: NodeSource, trace: NestTrace, memrefs, symbols, rounds: bool) -> None:
    if trace.reduce_vars and not any(s.op == "reduction" for s in trace.steps):
        raise Unsupported(Reason.unsupported_op, f"{trace.name}: reduction loops without a reduction")
    i64 = ir.IntegerType.get_signless(64)
    location = ir.Location.name(source.name, childLoc=_file_location(source.location))
    attributes = {
        "bridge.nodes": ir.ArrayAttr.get([ir.StringAttr.get(source.name)]),
        "bridge.kernels": ir.ArrayAttr.get([ir.IntegerAttr.get(i64, source.kernel)]),
    }
    with location:
        NestEmitter(trace, memrefs, symbols, rounds).emit(ir.InsertionPoint(entry), attributes)


def _file_location(location: tuple[str, int] | None):
    if location is None:
        return ir.Location.unknown()
    return ir.Location.file(location[0], location[1], 0)


def make_prover() -> Prover:
    return Prover(inductor.statically_known, inductor.size_hint)
