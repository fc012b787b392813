"""Reductions of the fused IR back to `ops.reduction`: the pieces that a split made are combined first.

Source for the pairwise Welford formulas: Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm
for computing sample variances" (1979).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from bridge import dtypes, ops_table
from bridge.mlir_runtime import ir
from bridge.reasons import Reason, Unsupported

if TYPE_CHECKING:
    from .evaluate import Evaluator


def lift_reduction(evaluator: Evaluator, loop, value) -> Any:
    """The result of a loop with `iter_args` as `ops.reduction` over the loops' variables."""
    position = list(loop.results).index(value)
    innermost, position = _innermost(loop, position)
    yielded = list(_terminator(innermost).operands)[position]
    owner = yielded.owner
    name = getattr(owner, "name", None)
    if name == "bridge.combine":
        return _structured(evaluator, innermost, owner.operation if hasattr(owner, "operation") else owner, yielded)
    pieces = _pieces(yielded, innermost.regions[0].blocks[0].arguments[position + 1], name)
    return _single(evaluator, name, pieces, value)


def _terminator(loop):
    return list(loop.regions[0].blocks[0].operations)[-1].operation


def _innermost(loop, position: int):
    """Follows the yields inward while a loop yields another loop's result."""
    while True:
        yielded = list(_terminator(loop).operands)[position]
        owner = yielded.owner
        if getattr(owner, "name", None) != "affine.for":
            return loop, position
        loop = owner.operation if hasattr(owner, "operation") else owner
        position = list(loop.results).index(yielded)


def _pieces(yielded, carried, name: str | None) -> list:
    """The values that a chain of one combiner adds to the carried value, in order."""
    pieces: list = []
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


def _reaches(value, carried, name: str | None) -> bool:
    """Whether following the combiner's operands from `value` leads to the carried value."""
    if value == carried:
        return True
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != name:
        return False
    return any(_reaches(o, carried, name) for o in owner.operands)


def _single(evaluator: Evaluator, name: str | None, pieces: list, value) -> Any:
    dtype = dtypes.signed_dtype(str(value.type))
    reductions = ops_table.LIFTED_BOOL_COMBINERS if dtype == torch.bool else ops_table.LIFTED_COMBINERS
    if name not in reductions:
        raise Unsupported(Reason.not_liftable, f"reduction by {name} of {dtype}")
    combine = getattr(evaluator.env.ops, ops_table.LIFTED_OPS[name])
    combined = functools.reduce(combine, [evaluator.value(p) for p in pieces])
    return evaluator.env.ops.reduction(dtype, dtype, reductions[name], combined)


def _structured(evaluator: Evaluator, innermost, combine, yielded) -> Any:
    from bridge._native._bridge_enum_gen import CombineKind

    kind = CombineKind(ir.IntegerAttr(combine.attributes["kind"]).value).name
    steps = _combine_chain(combine, innermost)
    which = list(combine.results).index(yielded)
    key = (kind, tuple(combine.results))
    if key not in evaluator.memo:
        evaluator.memo[key] = _STRUCTURED[kind](evaluator, steps)
    result = evaluator.memo[key]
    return result[which] if isinstance(result, tuple) else result


def _combine_chain(combine, innermost) -> list[list]:
    """The values of each `bridge.combine` from the carried state to the yielded one."""
    steps: list[list] = []
    arguments = list(innermost.regions[0].blocks[0].arguments)
    while True:
        operands = list(combine.operands)
        half = len(operands) // 2
        steps.append(operands[half:])
        if operands[0] in arguments:
            return steps[::-1]
        owner = operands[0].owner
        if isinstance(owner, ir.Block) or owner.name != "bridge.combine":
            raise Unsupported(Reason.not_liftable, "the loop carries more than one kind of combination")
        combine = owner.operation if hasattr(owner, "operation") else owner


def _welford(evaluator: Evaluator, steps: list[list]) -> Any:
    """One piece is `welford_reduce`; more are combined to (mean, m2, weight) of the pieces first."""
    dtype = dtypes.signed_dtype(str(steps[0][0].type))
    ops = evaluator.env.ops
    parts = [tuple(evaluator.value(v) for v in step) for step in steps]
    if len(parts) == 1 and _is_constant(steps[0][1], 0) and _is_constant(steps[0][2], 1):
        return ops.reduction(dtype, dtype, "welford_reduce", parts[0][0])
    combined = functools.reduce(functools.partial(_merge_moments, ops), parts)
    return ops.reduction(dtype, dtype, "welford_combine", combined)


def _merge_moments(ops, a: tuple, b: tuple) -> tuple:
    delta = ops.sub(b[0], a[0])
    weight = ops.add(a[2], b[2])
    share = ops.truediv(b[2], weight)
    mean = ops.add(a[0], ops.mul(delta, share))
    m2 = ops.add(ops.add(a[1], b[1]), ops.mul(ops.mul(delta, delta), ops.mul(a[2], share)))
    return mean, m2, weight


def _is_constant(value, number: float) -> bool:
    owner = value.owner
    if getattr(owner, "name", None) != "arith.constant":
        return False
    return ir.FloatAttr(owner.attributes["value"]).value == number


def _online_softmax(evaluator: Evaluator, steps: list[list]) -> Any:
    if len(steps) != 1:
        raise Unsupported(Reason.not_liftable, "an online softmax in several pieces")
    dtype = dtypes.signed_dtype(str(steps[0][0].type))
    return evaluator.env.ops.reduction(dtype, dtype, "online_softmax_reduce", evaluator.value(steps[0][0]))


def _argument_of_extremum(kind: str):
    def lift(evaluator: Evaluator, steps: list[list]) -> Any:
        if len(steps) != 1:
            raise Unsupported(Reason.not_liftable, f"{kind} in several pieces")
        dtype = dtypes.signed_dtype(str(steps[0][0].type))
        index = evaluator.env.ops.reduction(torch.int64, dtype, kind, evaluator.value(steps[0][0]))
        return None, index

    return lift


_STRUCTURED = {
    "welford": _welford,
    "online_softmax": _online_softmax,
    "argmax": _argument_of_extremum("argmax"),
    "argmin": _argument_of_extremum("argmin"),
}
