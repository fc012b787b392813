"""Result dtypes of steps that are not emitted yet (a masked region's type is needed before its body)."""

from __future__ import annotations

import functools

import torch

from .trace import Component, Step

_BOOL_RESULTS = frozenset(
    "eq ne lt le gt ge isnan isinf signbit logical_not logical_and logical_or logical_xor".split()
)
_EXPLICIT_DTYPE = {"constant": 1, "index_expr": 1, "to_dtype": 1, "to_dtype_bitcast": 1}
_EXPLICIT_DTYPE.update({name: 1 for name in ("trunc_to_int", "ceil_to_int", "floor_to_int", "round_to_int")})


def step_dtype(value, emitter) -> torch.dtype:
    """The compute dtype that emission will give `value` (a step, or a constant)."""
    return emitter.ops.compute_dtype(_raw_dtype(value, emitter))


def _raw_dtype(value, emitter) -> torch.dtype:
    if isinstance(value, Component):
        return emitter.values[value.step][value.position].dtype
    if not isinstance(value, Step):
        return torch.tensor(value).dtype
    if value in emitter.values:
        return emitter.values[value].dtype
    if value.op == "load":
        return emitter.memrefs[value.args[0]].dtype
    if value.op in _BOOL_RESULTS:
        return torch.bool
    if value.op in _EXPLICIT_DTYPE:
        return value.kwargs.get("dtype") or value.args[_EXPLICIT_DTYPE[value.op]]
    if value.op == "masked":
        return step_dtype(value.args[1], emitter)
    operands = value.args[1:] if value.op == "where" else value.args
    inferred = [step_dtype(a, emitter) for a in operands if isinstance(a, (Step, Component))]
    return functools.reduce(torch.promote_types, inferred)
