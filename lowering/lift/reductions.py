"""Reductions of the fused IR back to `ops.reduction`: the pieces that a split made are combined first.

Source for the pairwise Welford formulas: Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm
for computing sample variances" (1979).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TypeAlias

import sympy
import torch

from bridge import inductor
from bridge.affine import dtypes, ops_table
from bridge.affine.mlir_runtime import defining_operation, ir
from bridge.reasons import Reason, Unsupported

from .environment import Environment, Ops, OpsValue, State, ValueEvaluator
from .lanes import known_extents
from .reduction_loops import chain, terminator

#: The values that one `bridge.combine` adds to the state.
Step: TypeAlias = "list[ir.Value]"

#: Evaluator, steps and innermost loop -> the state after the reduction.
StructuredLift: TypeAlias = "Callable[[ValueEvaluator, list[Step], ir.Operation], OpsValue]"


def lift_reduction(evaluator: ValueEvaluator, loop: ir.Operation, value: ir.Value) -> OpsValue:
    """Return the result of a loop with `iter_args` as `ops.reduction` over the loops' variables."""
    _check_lanes(evaluator.env, loop)
    position = list(loop.results).index(value)
    innermost, position = _innermost(loop, position)
    yielded = list(terminator(innermost).operands)[position]
    owner = defining_operation(yielded)
    if owner is not None and owner.name == "bridge.combine":
        return _structured(evaluator, innermost, owner, yielded)
    name = None if owner is None else owner.name
    pieces = _pieces(yielded, innermost.regions[0].blocks[0].arguments[position + 1], name)
    return _single(evaluator, name, pieces, value)


def _check_lanes(env: Environment, loop: ir.Operation) -> None:
    """Raise Unsupported where a reduction is of more or fewer elements than the lanes have that it would be over."""
    loops = chain(loop)
    extents, lanes = known_extents(loops), env.segment or env.row
    if not env.simt_target or lanes is None or len(extents) != len(loops):
        return
    count = math.prod(extents)
    if lanes % count if env.once is not None else lanes != count:
        raise Unsupported(Reason.not_liftable, f"a reduction of {count} elements over {lanes} lanes")


def _innermost(loop: ir.Operation, position: int) -> tuple[ir.Operation, int]:
    """Follow the yields inward while a loop yields another loop's result."""
    while True:
        yielded = list(terminator(loop).operands)[position]
        inner = defining_operation(yielded)
        if inner is None or inner.name != "affine.for":
            return loop, position
        loop = inner
        position = list(loop.results).index(yielded)


def _pieces(yielded: ir.Value, carried: ir.Value, name: str | None) -> list[ir.Value]:
    """Return the values that a chain of one combiner adds to the carried value, in order."""
    pieces: list[ir.Value] = []
    current = yielded
    while current != carried:
        owner = current.owner
        if isinstance(owner, ir.Block) or owner.name != name:
            raise Unsupported(Reason.not_liftable, "the loop carries more than one kind of combination")
        left, right = owner.operands
        chain, piece = (left, right) if _reaches(left, carried, name) else (right, left)
        pieces.append(piece)
        current = chain
    return pieces[::-1]


def _reaches(value: ir.Value, carried: ir.Value, name: str | None) -> bool:
    """Return True if following the combiner's operands from `value` leads to the carried value."""
    if value == carried:
        return True
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != name:
        return False
    return any(_reaches(o, carried, name) for o in owner.operands)


def _single(evaluator: ValueEvaluator, name: str | None, pieces: list[ir.Value], value: ir.Value) -> OpsValue:
    """Combine the pieces of a reduction whose state is one value, and reduce."""
    dtype = dtypes.signed_dtype(str(value.type))
    reductions = ops_table.LIFTED_BOOL_COMBINERS if dtype == torch.bool else ops_table.LIFTED_COMBINERS
    if name not in reductions:
        raise Unsupported(Reason.not_liftable, f"reduction by {name} of {dtype}")
    combine = getattr(evaluator.env.ops, ops_table.LIFTED_OPS[name])
    combined = functools.reduce(combine, [evaluator.value(p) for p in pieces])
    return evaluator.reduce(dtype, reductions[name], combined)


def _structured(
    evaluator: ValueEvaluator, innermost: ir.Operation, combine: ir.Operation, yielded: ir.Value
) -> OpsValue:
    """Lift a reduction whose state is several values, once for all of them."""
    kind = combine_kind(combine)
    steps = _combine_chain(combine, innermost)
    which = list(combine.results).index(yielded)
    key = (kind, tuple(combine.results))
    if key not in evaluator.memo:
        evaluator.memo[key] = _STRUCTURED[kind](evaluator, steps, innermost)
    result = evaluator.memo[key]
    return result[which] if isinstance(result, tuple) else result


def combine_kind(combine: ir.Operation) -> str:
    """Return how a `bridge.combine` combines two states."""
    from bridge._native._bridge_enum_gen import CombineKind  # loads MLIR

    return CombineKind(ir.IntegerAttr(combine.attributes["kind"]).value).name


def _combine_chain(combine: ir.Operation, innermost: ir.Operation) -> list[Step]:
    """Return the values of each `bridge.combine` from the carried state to the yielded one."""
    steps: list[Step] = []
    arguments = list(innermost.regions[0].blocks[0].arguments)
    while True:
        operands = list(combine.operands)
        half = len(operands) // 2
        steps.append(operands[half:])
        if operands[0] in arguments:
            return steps[::-1]
        owner = defining_operation(operands[0])
        if owner is None or owner.name != "bridge.combine":
            raise Unsupported(Reason.not_liftable, "the loop carries more than one kind of combination")
        combine = owner


def _welford(evaluator: ValueEvaluator, steps: list[Step], innermost: ir.Operation) -> OpsValue:
    """Reduce one piece by `welford_reduce`; combine several to their (mean, m2, weight) first."""
    dtype = dtypes.signed_dtype(str(steps[0][0].type))
    ops = evaluator.env.ops
    parts = [tuple(evaluator.value(v) for v in step) for step in steps]
    if evaluator.env.in_registers and all(_is_element(step) for step in steps):
        plain = all(is_constant(step[2], 1) for step in steps)
        return _moments_in_two_passes(evaluator, parts, len(parts) * _iterations(innermost) if plain else None, dtype)
    if evaluator.env.in_parts:
        raise Unsupported(Reason.not_liftable, "a merge of moments over segments")
    if len(parts) == 1 and is_constant(steps[0][1], 0) and is_constant(steps[0][2], 1):
        return ops.reduction(dtype, dtype, "welford_reduce", parts[0][0])
    if not evaluator.env.simt_target:
        raise Unsupported(Reason.not_liftable, "a merge of moments, which Inductor's C++ code cannot vectorise")
    combined = functools.reduce(functools.partial(_merge_moments, ops), parts)
    return ops.reduction(dtype, dtype, "welford_combine", combined)


def _is_element(step: Step) -> bool:
    """Return True if a state (mean, m2, weight) is of one element, or of none (weight 0, of an idle lane)."""
    owner = step[1].owner
    if getattr(owner, "name", None) != "arith.select":
        return is_constant(step[1], 0)
    return all(is_constant(operand, 0) for operand in list(owner.operands)[1:])


def _moments_in_two_passes(
    evaluator: ValueEvaluator, parts: list[State], count: int | None, dtype: torch.dtype
) -> State:
    """Return (mean, m2, weight) by sums, as Inductor has it where a row is in registers: cheaper and more exact.

    count: elements, where every lane adds all of its own; None where the weights are to be asked.
    """
    ops = evaluator.env.ops

    def total(values: list[OpsValue]) -> OpsValue:
        """Sum the values by their weights over the row."""
        weighted = [v if count else ops.mul(v, w) for v, (_, _, w) in zip(values, parts, strict=True)]
        return evaluator.reduce(dtype, "sum", functools.reduce(ops.add, weighted))

    one = ops.constant(1.0, dtype)
    weight = ops.constant(float(count), dtype) if count else total([one] * len(parts))
    mean = ops.truediv(total([x for x, _, _ in parts]), weight)
    deviations = [ops.sub(x, mean) for x, _, _ in parts]
    return mean, total([ops.mul(d, d) for d in deviations]), weight


def _iterations(innermost: ir.Operation) -> int:
    """Return the number of iterations of the loops that carry a state; constant, since the row is in registers."""
    count, loop = 1, innermost
    while loop.name == "affine.for" and list(loop.results):
        count *= loop.attributes["upperBoundMap"].value.results[0].value
        loop = loop.parent.operation
    return count


def _merge_moments(ops: Ops, a: State, b: State) -> State:
    """Merge two states (mean, m2, weight) by the pairwise formulas."""
    delta = ops.sub(b[0], a[0])
    weight = ops.add(a[2], b[2])
    share = ops.truediv(b[2], weight)
    mean = ops.add(a[0], ops.mul(delta, share))
    m2 = ops.add(ops.add(a[1], b[1]), ops.mul(ops.mul(delta, delta), ops.mul(a[2], share)))
    return mean, m2, weight


def is_constant(value: ir.Value, number: float) -> bool:
    """Return True if a value is that constant."""
    owner = value.owner
    if getattr(owner, "name", None) != "arith.constant":
        return False
    is_float = dtypes.signed_dtype(str(value.type)).is_floating_point
    return (ir.FloatAttr if is_float else ir.IntegerAttr)(owner.attributes["value"]).value == number


def _online_softmax(evaluator: ValueEvaluator, steps: list[Step], _innermost: ir.Operation) -> OpsValue:
    """Return (maximum, sum of weighted exp(x - maximum)): reduce each piece, then merge the states."""
    dtype = dtypes.signed_dtype(str(steps[0][0].type))
    ops = evaluator.env.ops
    weights = [None if is_constant(step[1], 1) else evaluator.value(step[1]) for step in steps]
    values = [evaluator.value(step[0]) for step in steps]
    if evaluator.env.in_registers:
        return _softmax_in_two_passes(evaluator, values, weights, dtype)
    if evaluator.env.simt_target and any(w is not None for w in weights) and not inductor.merges_softmax_states():
        raise Unsupported(Reason.not_liftable, "a sum of weighted exponentials in a row that is not kept")
    operands = [x if w is None else (x, w) for x, w in zip(values, weights, strict=True)]
    states = [ops.reduction(dtype, dtype, "online_softmax_reduce", operand) for operand in operands]
    if len(states) == 1:
        return states[0]
    _require_row_arithmetic(evaluator)
    maximum = functools.reduce(ops.maximum, [state[0] for state in states])
    return maximum, functools.reduce(ops.add, [_rescaled(ops, state, maximum, dtype) for state in states])


def _softmax_in_two_passes(
    evaluator: ValueEvaluator, values: list[OpsValue], weights: list[OpsValue], dtype: torch.dtype
) -> State:
    """Return (maximum, sum of exp(x - maximum)) of a row, or of a segment, that is in registers."""
    ops = evaluator.env.ops
    maximum = evaluator.reduce(dtype, "max", functools.reduce(ops.maximum, values))
    terms = [ops.exp(ops.sub(value, maximum)) for value in values]
    terms = [t if w is None else ops.mul(t, w) for t, w in zip(terms, weights, strict=True)]
    return maximum, evaluator.reduce(dtype, "sum", functools.reduce(ops.add, terms))


def _require_row_arithmetic(evaluator: ValueEvaluator) -> None:
    """Raise Unsupported(not_liftable) where a body cannot compute with the results of its reductions."""
    if not evaluator.env.simt_target or evaluator.env.looped:
        raise Unsupported(Reason.not_liftable, "a split reduction whose pieces' results are to be merged")


def _rescaled(ops: Ops, state: State, maximum: object, dtype: torch.dtype) -> OpsValue:
    """Return a piece's sum relative to the maximum of all; zero for a piece of -inf alone, whose own sum is NaN."""
    piece_maximum, total = state
    scaled = ops.mul(total, ops.exp(ops.sub(piece_maximum, maximum)))
    empty = ops.eq(piece_maximum, ops.constant(float("-inf"), dtype))
    return ops.where(empty, ops.constant(0.0, dtype), scaled)


def _argument_of_extremum(kind: str) -> StructuredLift:
    """Return the lift of `argmax` or `argmin`: the index of the first extremum, as numbered before any split."""
    extremum = {"argmax": "max", "argmin": "min"}[kind]

    def lift(evaluator: ValueEvaluator, steps: list[Step], innermost: ir.Operation) -> OpsValue:
        """Reduce each piece, and take the first extremum of all."""
        if evaluator.env.in_parts:
            raise Unsupported(Reason.not_liftable, f"{kind} over segments of a row")
        dtype = dtypes.signed_dtype(str(steps[0][0].type))
        ops = evaluator.env.ops
        states = []
        for value, index in steps:
            piece = evaluator.value(value)
            local = ops.reduction(torch.int64, dtype, kind, piece)
            best = ops.reduction(dtype, dtype, extremum, piece) if len(steps) > 1 else None
            states.append((best, _original_index(evaluator, innermost, index, local)))
        return None, functools.reduce(functools.partial(first_of, ops, kind, dtype), states)[1]

    return lift


def _original_index(evaluator: ValueEvaluator, innermost: ir.Operation, index: ir.Value, local: object) -> OpsValue:
    """Return what the carried `index` is at the iteration number `local` of the loops that are reduced over."""
    variable = evaluator.index(innermost.regions[0].blocks[0].arguments[0])
    cast = index.owner
    if isinstance(cast, ir.Block) or cast.name != "arith.index_cast":
        raise Unsupported(Reason.not_liftable, "the index of an extremum is not affine")
    expression = evaluator.index(cast.operands[0])
    if sympy.expand(expression - _iteration_number(evaluator, innermost)) == 0:
        return local
    factor = expression.coeff(variable)
    offset = sympy.expand(expression - factor * variable)
    if not factor.is_Integer or not offset.is_Integer:
        raise Unsupported(Reason.not_liftable, "the index of an extremum over several split loops")
    _require_row_arithmetic(evaluator)
    ops = evaluator.env.ops
    scaled = ops.mul(local, ops.constant(int(factor), torch.int64))
    return ops.add(scaled, ops.constant(int(offset), torch.int64))


def _iteration_number(evaluator: ValueEvaluator, innermost: ir.Operation) -> sympy.Expr:
    """Return the number of an iteration among those of the loops that carry the state, in order."""
    number, stride, loop = sympy.Integer(0), sympy.Integer(1), innermost
    while loop.name == "affine.for" and list(loop.results):
        number += stride * evaluator.index(loop.regions[0].blocks[0].arguments[0])
        extent = loop.attributes["upperBoundMap"].value.results[0]
        if not isinstance(extent, ir.AffineConstantExpr):
            break
        stride, loop = stride * extent.value, loop.parent.operation
    return number


def first_of(ops: Ops, kind: str, dtype: torch.dtype, a: State, b: State) -> State:
    """Return the better of two (extremum, index) states: of equal ones the smaller index, and a NaN before all."""
    better = ops.gt(a[0], b[0]) if kind == "argmax" else ops.lt(a[0], b[0])
    tie = ops.eq(a[0], b[0])
    if dtype.is_floating_point:
        nan_a, nan_b = ops.ne(a[0], a[0]), ops.ne(b[0], b[0])
        better = ops.or_(better, ops.and_(nan_a, ops.eq(b[0], b[0])))
        tie = ops.or_(tie, ops.and_(nan_a, nan_b))
    takes_a = ops.or_(better, ops.and_(tie, ops.lt(a[1], b[1])))
    return ops.where(takes_a, a[0], b[0]), ops.where(takes_a, a[1], b[1])


_STRUCTURED: dict[str, StructuredLift] = {
    "welford": _welford,
    "online_softmax": _online_softmax,
    "argmax": _argument_of_extremum("argmax"),
    "argmin": _argument_of_extremum("argmin"),
}
