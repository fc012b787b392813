"""Loads at places that depend on data: Inductor's indirect indexing, and `bridge.gather` for it.

A buffer that no node of the group stores to has the same elements all the time, so what such a load gives depends on
its place alone.  No proof has to know which element it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import sympy

from ...reasons import Reason, Unsupported
from .. import dtypes
from ..mlir_runtime import ir
from .access import ONE, ZERO, Term, expand, is_iteration_atom, terms

if TYPE_CHECKING:
    from .elementwise import Elementwise, Typed

_PREFIX = "bridge_position"


@dataclass(frozen=True, eq=False)
class Position:
    """Hold what `ops.indirect_indexing` was given.

    value: a step of the trace; size: of the dimension; check: the kernel is to compare the value with the size;
    wraps: a negative value counts from the end.
    """

    value: Any
    size: sympy.Expr
    check: bool
    wraps: bool


@dataclass(frozen=True, eq=False)
class Gather:
    """Hold a load: from `buffer` at the element offset `base` + sum of strides * positions.

    base: over the iteration variables; strides: over the sizes alone.
    """

    buffer: str
    base: sympy.Expr
    positions: list[tuple[Position, sympy.Expr]]


def position_symbol(number: int) -> sympy.Symbol:
    """Return the symbol that stands in indices for the position of that number."""
    return sympy.Symbol(f"{_PREFIX}{number}", integer=True, nonnegative=True)


def depends_on_data(*expressions: object) -> bool:
    """Return True if a position is in one of the expressions."""
    symbols = (s for e in expressions for s in getattr(e, "free_symbols", ()))
    return any(symbol.name.startswith(_PREFIX) for symbol in symbols)


def make_gather(buffer: str, index: sympy.Expr, positions: Mapping[sympy.Symbol, Position]) -> Gather:
    """Split an index; Unsupported(indirect_index) if it is not linear in the positions."""
    strides: dict[sympy.Symbol, sympy.Expr] = {}
    base = ZERO
    for term in sympy.Add.make_args(expand(index)):
        symbols = term.free_symbols & positions.keys()
        if not symbols:
            base += term
            continue
        symbol, stride = _split(term, symbols)
        strides[symbol] = strides.get(symbol, ZERO) + stride
    return Gather(buffer, base, [(positions[symbol], strides[symbol]) for symbol in positions if symbol in strides])


def _split(term: sympy.Expr, symbols: set[sympy.Symbol]) -> tuple[sympy.Symbol, sympy.Expr]:
    """Return (position, its stride) of a term."""
    symbol = next(iter(symbols))
    stride = sympy.Mul(*[factor for factor in sympy.Mul.make_args(term) if factor != symbol])
    if symbol not in sympy.Mul.make_args(term) or stride.free_symbols & symbols or is_iteration_atom(stride):
        raise Unsupported(Reason.indirect_index, f"{term} is no multiple of a position that a tensor holds")
    return symbol, stride


class IndexEmitter(Protocol):
    """Ask of the emitter of a nest (emit.NestEmitter) what a gather needs."""

    ops: Elementwise

    def affine_map(self, expressions: tuple[sympy.Expr, ...]) -> tuple[ir.AffineMapAttr, list[ir.Value]]:
        """Return (map, operands) of affine expressions."""

    def value(self, argument: object) -> Any:
        """Return the value of a step."""


def emit_gather(emitter: IndexEmitter, gather: Gather, memref: ir.Value, element: ir.Type) -> ir.Value:
    """Emit `bridge.gather`, and return the element; Unsupported for positions that are no signed integers."""
    values = [_integer(emitter.value(position.value)) for position, _ in gather.positions]
    sizes = [_applied(emitter, position.size) for position, _ in gather.positions]
    strides = [_applied(emitter, stride) for _, stride in gather.positions]
    flags = {
        "checks": ir.DenseBoolArrayAttr.get([position.check for position, _ in gather.positions]),
        "wraps": ir.DenseBoolArrayAttr.get([position.wraps for position, _ in gather.positions]),
    }
    operands = [memref, _offset(emitter, gather.base), *values, *sizes, *strides]
    return emitter.ops.create("bridge.gather", operands, [element], flags).result


def _integer(typed: Typed) -> ir.Value:
    """Return the value of a signed integer."""
    if dtypes.kind(typed.dtype) != "signed":
        raise Unsupported(Reason.indirect_index, f"a position of {typed.dtype}")
    return typed.value


def _offset(emitter: IndexEmitter, base: sympy.Expr) -> ir.Value:
    """Emit an offset; what has a symbolic stride is multiplied by it, which no affine expression can say."""
    parts = terms(base)
    plain = [(c, atom) for c, atom in parts if c.is_Integer or atom == ONE]
    offset = _applied(emitter, sympy.Add(*[c * atom for c, atom in plain]))
    for coefficient, atom in (part for part in parts if part not in plain):
        offset = _index_op(emitter, "arith.addi", offset, _scaled(emitter, (coefficient, atom)))
    return offset


def _scaled(emitter: IndexEmitter, term: Term) -> ir.Value:
    """Emit a product."""
    return _index_op(emitter, "arith.muli", *(_applied(emitter, factor) for factor in term))


def _index_op(emitter: IndexEmitter, name: str, left: ir.Value, right: ir.Value) -> ir.Value:
    """Emit an operation on two indices."""
    return emitter.ops.create(name, [left, right], [ir.IndexType.get()]).result


def _applied(emitter: IndexEmitter, expr: sympy.Expr) -> ir.Value:
    """Emit an affine expression as an index."""
    affine_map, operands = emitter.affine_map((expr,))
    return emitter.ops.create("affine.apply", operands, [ir.IndexType.get()], {"map": affine_map}).result


def check_only_read(name: str, gathered: set[str], written: set[str]) -> None:
    """Raise Unsupported(indirect_index) if a node gathers from what the group stores to; both are storages."""
    both = gathered & written
    if both:
        raise Unsupported(Reason.indirect_index, f"{name}: {', '.join(sorted(both))} is written beside it")
