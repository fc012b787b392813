"""Reductions as affine loops with `iter_args`: the state goes around, one combiner an iteration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import sympy
import torch

from ... import inductor
from ...reasons import Reason, Unsupported
from .. import dtypes
from .. import ops_table as table
from ..mlir_runtime import ir
from .elementwise import Elementwise, Typed
from .trace import NestTrace, Step

#: Inductor's reduction types whose state is a tuple, and the `bridge.combine` kind that steps it.
STRUCTURED = {
    "welford_reduce": "welford",
    "welford_combine": "welford",
    "argmax": "argmax",
    "argmin": "argmin",
    "online_softmax_reduce": "online_softmax",
}


class Nest(Protocol):
    """Ask of the emitter of a nest (emit.NestEmitter) what its reductions need."""

    trace: NestTrace
    ops: Elementwise

    def loop(self, variable: sympy.Symbol, extent: sympy.Expr, iter_args: Sequence[ir.Value] = ()) -> ir.OpView:
        """Open a loop."""

    def value(self, argument: object) -> Any:
        """Return a step's value."""

    def has_value(self, step: Step) -> bool:
        """Return True if a step has been emitted."""

    def index_value(self, expr: sympy.Expr, dtype: torch.dtype) -> Typed:
        """Emit an index as a number."""


class ReductionEmitter:
    """Open the reduction loops with the states of all reductions of the body, and close them with yields."""

    def __init__(self, nest: Nest):
        """Start without loops."""
        self.nest = nest
        self.loops: list[ir.OpView] = []
        self.pending: dict[Step, slice] = {}
        self.states: dict[Step, list[torch.dtype]] = {}
        self.yielded: list[ir.Value | None] = []
        self.extents: list[tuple[sympy.Symbol, sympy.Expr]] = []
        self.after: ir.InsertionPoint | None = None

    def open(self, reduce_vars: list[tuple[sympy.Symbol, sympy.Expr]]) -> None:
        """Open the loops, if the body reduces."""
        steps = [s for s in self.nest.trace.steps if s.op == "reduction"]
        if not steps:
            return
        self.after, self.extents = self.nest.ops.ip, reduce_vars
        states = self._initial_states(steps)
        self.yielded = [None] * len(states)
        for variable, extent in reduce_vars:
            operation = self.nest.loop(variable, extent, states)
            self.loops.append(operation)
            states = list(operation.body.arguments)[1:]

    def _initial_states(self, steps: list[Step]) -> list[ir.Value]:
        """Emit the initial states of reductions."""
        values: list[ir.Value] = []
        for step in steps:
            self.states[step] = dtypes_of_state = self._state_dtypes(step)
            initial = inductor.reduction_identity(step.args[2], dtypes_of_state[0])
            start = len(values)
            values += [self.nest.ops.constant(v, d).value for v, d in zip(initial, dtypes_of_state, strict=True)]
            self.pending[step] = slice(start, len(values))
        return values

    def _state_dtypes(self, step: Step) -> list[torch.dtype]:
        """Return the dtype of each value of a state."""
        dtype, src_dtype, reduction_type, operand = step.args
        if reduction_type in ("argmax", "argmin"):
            if isinstance(operand, tuple):  # of a tensor in another order of memory: the number in the logical order
                raise Unsupported(Reason.unsupported_op, f"{reduction_type} of values that bring their indices")
            return [self._state_dtype(src_dtype), torch.int64]
        if reduction_type.startswith("welford"):
            return [self._state_dtype(dtype)] * 3
        if reduction_type == "online_softmax_reduce":
            return [self._state_dtype(dtype)] * 2
        self._combiner(reduction_type, self._state_dtype(dtype))
        return [self._state_dtype(dtype)]

    def _state_dtype(self, dtype: torch.dtype) -> torch.dtype:
        """Return the dtype to reduce in; Unsupported(unsupported_dtype) for unsigned integers."""
        if dtypes.kind(dtype) == "unsigned":
            raise Unsupported(Reason.unsupported_dtype, f"reduction of {dtype}: a loop carries signless integers")
        return self.nest.ops.compute_dtype(dtype)

    def _combiner(self, reduction_type: str, dtype: torch.dtype) -> str:
        """Return the operation that combines states of one value; Unsupported(unsupported_op) without one."""
        combiners = {
            "float": table.FLOAT_COMBINERS,
            "signed": table.SIGNED_COMBINERS,
            "bool": table.BOOL_COMBINERS,
        }[dtypes.kind(dtype)]
        if reduction_type not in combiners:
            raise Unsupported(Reason.unsupported_op, f"reduction {reduction_type} of {dtype}")
        return combiners[reduction_type]

    def reduce(self, step: Step) -> Typed | tuple[Typed, ...]:
        """Emit one combination inside the innermost loop; the results are the outermost loop's."""
        state_dtypes, where = self.states[step], self.pending[step]
        values = self._combined_values(step, state_dtypes)
        arguments = list(self.loops[-1].body.arguments)[1:][where]
        self.yielded[where] = self._combine(step.args[2], arguments, values, state_dtypes)
        results = [Typed(r, d) for r, d in zip(list(self.loops[0].results)[where], state_dtypes, strict=True)]
        if all(s is step or self.nest.has_value(s) for s in self.pending):
            self.nest.ops.ip = self.after
        return self._visible_results(step, results)

    def _visible_results(self, step: Step, results: list[Typed]) -> Typed | tuple[Typed, ...]:
        """Return what other steps see: of argmax and argmin the index alone, a single state as a plain value."""
        if step.args[2] in ("argmax", "argmin"):
            return results[1]
        return results[0] if len(results) == 1 else tuple(results)

    def _combined_values(self, step: Step, state_dtypes: list[torch.dtype]) -> list[Typed]:
        """Return what one iteration combines with the state."""
        reduction_type, operand = step.args[2], self.nest.value(step.args[3])
        ops = self.nest.ops
        if reduction_type in ("argmax", "argmin"):
            operand = (operand, self.nest.index_value(self._linear_index(), torch.int64))
        elif reduction_type == "welford_reduce":
            operand = (operand, ops.constant(0, state_dtypes[1]), ops.constant(1, state_dtypes[2]))
        elif reduction_type == "online_softmax_reduce" and not isinstance(operand, tuple):
            operand = (operand, ops.constant(1, state_dtypes[1]))
        operands = operand if isinstance(operand, tuple) else (operand,)
        return [ops.convert(o, d) for o, d in zip(operands, state_dtypes, strict=True)]

    def _linear_index(self) -> sympy.Expr:
        """Return the number of an iteration of the reduction loops."""
        linear = sympy.Integer(0)
        for variable, extent in self.extents:
            linear = linear * extent + variable
        return linear

    def _combine(
        self, reduction_type: str, arguments: list[ir.Value], values: list[Typed], state_dtypes: list[torch.dtype]
    ) -> list[ir.Value]:
        """Emit the combination of a state with values and return the new state."""
        operands = [v.value for v in values]
        if reduction_type in STRUCTURED:
            return self._structured(STRUCTURED[reduction_type], arguments, operands)
        name = self._combiner(reduction_type, state_dtypes[0])
        return [self.nest.ops.create(name, [arguments[0], operands[0]], [arguments[0].type]).result]

    def _structured(self, kind: str, arguments: list[ir.Value], operands: list[ir.Value]) -> list[ir.Value]:
        """Emit `bridge.combine` of a state of several values."""
        from ..._native._bridge_enum_gen import CombineKind  # loads MLIR

        attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), CombineKind[kind].value)
        operation = self.nest.ops.create(
            "bridge.combine", arguments + operands, [a.type for a in arguments], {"kind": attribute}
        )
        return list(operation.results)

    def close(self) -> None:
        """Yield the states from the innermost loop outward."""
        yielded = self.yielded
        for operation in reversed(self.loops):
            self.nest.ops.ip = ir.InsertionPoint(operation.body)
            self.nest.ops.create("affine.yield", yielded, [])
            yielded = list(operation.results)
