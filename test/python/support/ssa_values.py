"""Make SSA values of a module written as text, for tests of what the lift makes of them."""

from __future__ import annotations

import contextlib

import sympy

from bridge.affine.mlir_runtime import context, ir
from bridge.lowering.lift.environment import Environment
from bridge.lowering.lift.evaluate import Evaluator


class Terms:
    """Stand in for Inductor's `ops`: calls become text."""

    def __getattr__(self, name):
        return lambda *args, **kwargs: f"{name}({', '.join(map(str, (*args, *kwargs.values())))})"

    def masked(self, mask, body, other):
        return f"masked({mask}, {body()}, {other})"


def operations(module, name):
    """Return the operations of that name, in order."""
    found = []

    def visit(operation):
        if operation.name == name:
            found.append(operation.operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


@contextlib.contextmanager
def evaluating(text, **settings):
    """Yield (evaluator, module) of a text.

    Memrefs are b0, b1 and so on, of rows of 8 elements; loop variables i0, i1 and so on.
    """
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        (function,) = operations(module, "func.func")
        memrefs = function.regions[0].blocks[0].arguments
        strides = {1: [sympy.Integer(1)], 2: [sympy.Integer(8), sympy.Integer(1)]}
        buffers = {m: (f"b{k}", strides[ir.MemRefType(m.type).rank]) for k, m in enumerate(memrefs)}
        loops = [loop.regions[0].blocks[0].arguments[0] for loop in operations(module, "affine.for")]
        indices = {v: sympy.Symbol(f"i{k}", integer=True, nonnegative=True) for k, v in enumerate(loops)}
        yield Evaluator(Environment(Terms(), buffers, indices, **settings)), module
