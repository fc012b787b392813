"""Hold what IR values outside the loops mean, and what the lift of a reduction asks of the evaluation of values."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import sympy
import torch

from bridge.affine.mlir_runtime import ir
from bridge.affine.translate.cyclic_shifts import ShiftedSubscripts

from .broadcasts import Broadcast

#: Inductor's `ops` namespace, and a value of it: what they are depends on the handler that is installed.
Ops: TypeAlias = Any
OpsValue: TypeAlias = Any

#: The values that a reduction carries.
State: TypeAlias = tuple[OpsValue, ...]


@dataclass(frozen=True)
class Environment:
    """Hold what IR values outside the loops mean.

    ops: Inductor's `ops` namespace; buffers: (name, strides in elements) of each memref argument;
    indices: sympy value of induction variables and size arguments; names of values are `ir.Value`s.
    simt_target: see `band.FunctionTables`; segment: lanes that one reduction is over, None for the whole row;
    once: zero in one lane of those that have the same element of what is reduced, None where no two have.
    in_registers: a reduction may use the result of another, since the row is read once;
    looped: a kernel may go over the row in a loop, in which the result of a reduction is not there yet;
    new_contents: the name to store under, of each buffer that is overwritten; overwritten: the buffers that are by now.
    seeds: the buffers of seeds of random numbers; compared: what is loaded as memory would have rounded it, since
    something is asked to equal it.
    row: the lanes of a row, None where values cannot be broadcast; broadcasts: what is loaded in all lanes, and the
    store that it is of, in some of them; shifts: by buffer, of subscripts that are shifted in memory; within: the
    conditions of the masked block that is evaluated, each with what it is of.
    """

    ops: Ops
    buffers: dict[ir.Value, tuple[str, list[sympy.Expr]]]
    indices: dict[ir.Value, sympy.Expr]
    simt_target: bool = True
    segment: int | None = None
    once: sympy.Expr | None = None
    in_registers: bool = False
    looped: bool = False
    new_contents: Mapping[str, str] = field(default_factory=dict)
    overwritten: frozenset[str] = frozenset()
    seeds: frozenset[str] = frozenset()
    compared: frozenset[ir.Value] = frozenset()
    row: int | None = None
    broadcasts: Mapping[ir.Value, Broadcast] = field(default_factory=dict)
    shifts: Mapping[str, tuple[ShiftedSubscripts, ...]] = field(default_factory=dict)
    within: frozenset[Hashable] = frozenset()

    @property
    def in_parts(self) -> bool:
        """Return True if a reduction is not of all lanes, each of which has an element of its own."""
        return self.segment is not None or self.once is not None


class ValueEvaluator(Protocol):
    """Ask of an evaluator (evaluate.Evaluator) what the lift of a reduction needs."""

    env: Environment
    memo: dict[Hashable, OpsValue]

    def value(self, value: ir.Value) -> OpsValue:
        """Return the `ops` value of an SSA value."""

    def index(self, value: ir.Value) -> sympy.Expr:
        """Return the sympy value of an `index`-typed SSA value."""

    def reduce(self, dtype: torch.dtype, kind: str, value: object) -> OpsValue:
        """Reduce over the row, or over each lane's segment of it."""
