"""Reductions of several values that a lane does by itself: `bridge.combine` outside of loops, as arithmetic."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import TypeAlias

import torch

from bridge import inductor
from bridge.affine import dtypes
from bridge.affine.mlir_runtime import defining_operation, ir
from bridge.reasons import Reason, Unsupported

from .environment import Ops, OpsValue, State, ValueEvaluator
from .reductions import Step, combine_kind, first_of, is_constant

#: Evaluator, states and dtype of the first of their values -> the state that they combine to.
Combination: TypeAlias = "Callable[[ValueEvaluator, list[Step], torch.dtype], State]"


def lift_combination(evaluator: ValueEvaluator, combine: ir.Operation, value: ir.Value) -> OpsValue:
    """Return a result of a `bridge.combine` whose steps before it are operations, too; Unsupported(not_liftable)."""
    kind = combine_kind(combine)
    if kind not in _COMBINATIONS:
        raise Unsupported(Reason.not_liftable, f"bridge.combine {kind} outside of loops")
    key = ("state", tuple(combine.results))
    if key not in evaluator.memo:
        dtype = dtypes.signed_dtype(str(combine.results[0].type))
        evaluator.memo[key] = _COMBINATIONS[kind](evaluator, _states(combine, kind, dtype), dtype)
    return evaluator.memo[key][list(combine.results).index(value)]


def _states(combine: ir.Operation, kind: str, dtype: torch.dtype) -> list[Step]:
    """Return what a chain of combinations is of, in order: the state that it begins with unless nothing is in it."""
    steps: list[Step] = []
    current: ir.Operation | None = combine
    while current is not None:
        half = len(current.operands) // 2
        before = list(current.operands)[:half]
        steps.append(list(current.operands)[half:])
        current = _step_of_same_kind(before, current)
    if not _is_empty(before, kind, dtype):
        steps.append(before)
    return steps[::-1]


def _step_of_same_kind(state: Step, combine: ir.Operation) -> ir.Operation | None:
    """Return the `bridge.combine` whose results are a state, if it combines as another one does."""
    owner = defining_operation(state[0])
    if owner is None or owner.name != "bridge.combine":
        return None
    same = owner.attributes["kind"] == combine.attributes["kind"] and list(owner.results) == state
    return owner if same else None


def _is_empty(state: Step, kind: str, dtype: torch.dtype) -> bool:
    """Return True if a state is that of no elements: its weight or sum is zero, or no extremum is before it."""
    if kind in ("welford", "online_softmax"):
        return is_constant(state[-1], 0)
    return is_constant(state[0], inductor.reduction_identity(kind, dtype)[0])


def _balanced(combine: Callable[[OpsValue, OpsValue], OpsValue], values: list[OpsValue]) -> OpsValue:
    """Combine values pairwise, as a reduction over lanes does: of a sum, the rounding errors add up less."""
    while len(values) > 1:
        pairs = [combine(a, b) for a, b in zip(values[::2], values[1::2], strict=False)]
        values = pairs + values[2 * len(pairs) :]
    return values[0]


def _weights(evaluator: ValueEvaluator, steps: list[Step]) -> list[OpsValue | None]:
    """Return the last value of each state, None where it is one."""
    return [None if is_constant(step[-1], 1) else evaluator.value(step[-1]) for step in steps]


def _times(ops: Ops, value: OpsValue, weight: OpsValue | None) -> OpsValue:
    """Return a value by its weight."""
    return value if weight is None else ops.mul(value, weight)


def _moments(evaluator: ValueEvaluator, steps: list[Step], dtype: torch.dtype) -> State:
    """Return (mean, m2, weight) by sums, as Inductor has them where a row is in registers."""
    ops, weights = evaluator.env.ops, _weights(evaluator, steps)
    means = [evaluator.value(step[0]) for step in steps]
    weight = ops.constant(float(len(steps)), dtype)
    if any(w is not None for w in weights):
        one = ops.constant(1.0, dtype)
        weight = _balanced(ops.add, [one if w is None else w for w in weights])
    weighted = [_times(ops, x, w) for x, w in zip(means, weights, strict=True)]
    mean = ops.truediv(_balanced(ops.add, weighted), weight)
    deviations = [ops.sub(x, mean) for x in means]
    squares = [_times(ops, ops.mul(d, d), w) for d, w in zip(deviations, weights, strict=True)]
    squares += [evaluator.value(step[1]) for step in steps if not is_constant(step[1], 0)]
    return mean, _balanced(ops.add, squares), weight


def _softmax(evaluator: ValueEvaluator, steps: list[Step], _dtype: torch.dtype) -> State:
    """Return (maximum, sum of weighted exp(x - maximum)); of -inf alone the sum is NaN, as in eager."""
    ops, weights = evaluator.env.ops, _weights(evaluator, steps)
    values = [evaluator.value(step[0]) for step in steps]
    maximum = _balanced(ops.maximum, values)
    terms = [_times(ops, ops.exp(ops.sub(x, maximum)), w) for x, w in zip(values, weights, strict=True)]
    return maximum, _balanced(ops.add, terms)


def _extremum(kind: str) -> Combination:
    """Return the combination of `argmax` or `argmin`: the first extremum and its index."""

    def combined(evaluator: ValueEvaluator, steps: list[Step], dtype: torch.dtype) -> State:
        """Return the better of all (extremum, index) states."""
        ops = evaluator.env.ops
        states = [tuple(evaluator.value(v) for v in step) for step in steps]
        better = _earlier_of if _are_ascending([step[1] for step in steps]) else first_of
        return functools.reduce(functools.partial(better, ops, kind, dtype), states)

    return combined


def _are_ascending(indices: list[ir.Value]) -> bool:
    """Return True if indices are constants, each more than the one before."""
    if any(getattr(index.owner, "name", None) != "arith.constant" for index in indices):
        return False
    numbers = [ir.IntegerAttr(index.owner.attributes["value"]).value for index in indices]
    return all(a < b for a, b in itertools.pairwise(numbers))


def _earlier_of(ops: Ops, kind: str, dtype: torch.dtype, a: State, b: State) -> State:
    """Return the better of two (extremum, index) states, of which the first has the smaller index; NaN before all."""
    takes_a = ops.ge(a[0], b[0]) if kind == "argmax" else ops.le(a[0], b[0])
    if dtype.is_floating_point:
        takes_a = ops.or_(takes_a, ops.ne(a[0], a[0]))
    return ops.where(takes_a, a[0], b[0]), ops.where(takes_a, a[1], b[1])


_COMBINATIONS: dict[str, Combination] = {
    "welford": _moments,
    "online_softmax": _softmax,
    "argmax": _extremum("argmax"),
    "argmin": _extremum("argmin"),
}
