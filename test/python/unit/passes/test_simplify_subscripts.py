"""Test that the short form of `bridge-simplify-subscripts` is the same number in every iteration."""

from __future__ import annotations

import itertools
import math
import operator
import random
from collections.abc import Callable

import pytest

from bridge.affine.mlir_runtime import context, ir, passmanager

EXTENTS = (8, 7, 3, 14)
PIPELINE = "builtin.module(func.func(bridge-simplify-subscripts))"


def random_expression(generator: random.Random, depth: int) -> str:
    if depth == 0 or generator.random() < 0.15:
        return generator.choice([*(f"d{n}" for n in range(len(EXTENTS))), str(generator.randrange(60))])
    left = random_expression(generator, depth - 1)
    kind = generator.choice(["+", "+", "+", "*", "floordiv", "mod", "ceildiv"])
    if kind == "+":
        return f"({left} + {random_expression(generator, depth - 1)})"
    factor = generator.choice([-7, -1, 2, 7, 8, 14, 56]) if kind == "*" else generator.choice([2, 7, 8, 14, 49, 56])
    return f"({left} {kind} {factor})"


def applied(expressions: list[str]):
    """Return a module that uses each expression of the loops' variables inside of the loops."""
    loops = "".join(f"affine.for %i{n} = 0 to {extent} {{\n" for n, extent in enumerate(EXTENTS))
    dims, variables = (", ".join(f"{name}{n}" for n in range(len(EXTENTS))) for name in ("d", "%i"))
    uses = "".join(
        f'%a{n} = affine.apply affine_map<({dims}) -> ({e})>({variables})\n"test.use"(%a{n}) : (index) -> ()\n'
        for n, e in enumerate(expressions)
    )
    return ir.Module.parse(f"func.func @f() {{\n{loops}{uses}{'}' * len(EXTENTS)}\nreturn\n}}")


def values(module, remainder: Callable = operator.mod) -> list[Callable]:
    """Return what each `affine.apply` gives, as functions of the loops' variables from the outermost inward."""
    found: list[Callable] = []
    variables: list = []
    block = module.body.operations[0].regions[0].blocks[0]
    while len(variables) < len(EXTENTS):
        block = block.operations[0].regions[0].blocks[0]
        variables.append(block.arguments[0])
    for op in (o.operation for o in block.operations):
        if op.name == "affine.apply":
            run = runner(ir.AffineMapAttr(op.attributes["map"]).value.results[0], remainder)
            places = [variables.index(operand) for operand in op.operands]
            found.append(lambda p, places=places, run=run: run([p[n] for n in places]))
    return found


def runner(expr, remainder: Callable) -> Callable:
    if isinstance(expr, ir.AffineConstantExpr):
        return lambda dims, value=expr.value: value
    if isinstance(expr, ir.AffineDimExpr):
        return lambda dims, n=expr.position: dims[n]
    left, right = runner(expr.lhs, remainder), runner(expr.rhs, remainder)
    operation = {
        ir.AffineAddExpr: lambda a, b: a + b,
        ir.AffineMulExpr: lambda a, b: a * b,
        ir.AffineFloorDivExpr: lambda a, b: a // b,
        ir.AffineCeilDivExpr: lambda a, b: -(-a // b),
        ir.AffineModExpr: remainder,
    }[type(expr)]
    return lambda dims: operation(left(dims), right(dims))


def simplified(seed: int, remainder: Callable) -> tuple[list[Callable], list[Callable]]:
    """Return 60 expressions before and after the pass."""
    generator = random.Random(seed)
    with context() as ctx:
        ctx.allow_unregistered_dialects = True
        module = applied([random_expression(generator, 5) for _ in range(60)])
        before = values(module, remainder)
        passmanager.PassManager.parse(PIPELINE).run(module.operation)
        return before, values(module, remainder)


@pytest.mark.parametrize("seed", range(4))
def test_remainders_of_negative_numbers_came_about(seed):
    """Check that no remainder becomes one of a negative number: Triton's has the sign of its dividend.

    `(39 - x) mod 2` became `(1 - x) mod 2`.
    """
    points = list(itertools.product(*map(range, EXTENTS)))[::3]
    (before, after), (signed_before, signed_after) = (simplified(seed, r) for r in (operator.mod, math.fmod))
    unsigned = [all(b(p) == s(p) for p in points) for b, s in zip(before, signed_before, strict=True)]
    assert sum(unsigned) > 30
    for never_negative, one, other in zip(unsigned, after, signed_after, strict=True):
        assert not never_negative or all(one(p) == other(p) for p in points)


@pytest.mark.parametrize("seed", range(4))
def test_same_numbers(seed):
    generator = random.Random(seed)
    points = list(itertools.product(*map(range, EXTENTS)))
    with context() as ctx:
        ctx.allow_unregistered_dialects = True
        module = applied([random_expression(generator, 5) for _ in range(60)])
        before, text = values(module), str(module)
        passmanager.PassManager.parse(PIPELINE).run(module.operation)
        after = values(module)
        assert str(module) != text
    assert len(before) == len(after) == 60
    for original, shorter in zip(before, after, strict=True):
        assert all(original(p) == shorter(p) for p in generator.sample(points, 300))
