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
from .access import ZERO, expand, is_iteration_atom

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

    def index(self, expr: sympy.Expr) -> ir.Value:
        """Emit an index."""

    def value(self, argument: object) -> Any:
        """Return the value of a step."""


def emit_gather(emitter: IndexEmitter, gather: Gather, memref: ir.Value, element: ir.Type) -> ir.Value:
    """Emit `bridge.gather`, and return the element; Unsupported for positions that are no signed integers."""
    values = [_integer(emitter.value(position.value)) for position, _ in gather.positions]
    sizes = [emitter.index(position.size) for position, _ in gather.positions]
    strides = [emitter.index(stride) for _, stride in gather.positions]
    flags = {
        "checks": ir.DenseBoolArrayAttr.get([position.check for position, _ in gather.positions]),
        "wraps": ir.DenseBoolArrayAttr.get([position.wraps for position, _ in gather.positions]),
    }
    operands = [memref, emitter.index(gather.base), *values, *sizes, *strides]
    return emitter.ops.create("bridge.gather", operands, [element], flags).result


def _integer(typed: Typed) -> ir.Value:
    """Return the value of a signed integer."""
    if dtypes.kind(typed.dtype) != "signed":
        raise Unsupported(Reason.indirect_index, f"a position of {typed.dtype}")
    return typed.value


def check_only_read(name: str, gathered: set[str], written: set[str]) -> None:
    """Raise Unsupported(indirect_index) if a node gathers from what the group stores to; both are storages."""
    both = gathered & written
    if both:
        raise Unsupported(Reason.indirect_index, f"{name}: {', '.join(sorted(both))} is written beside it")
