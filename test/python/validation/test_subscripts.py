"""Test bridge-prove-subscripts against all iterations of small random nests: what it accepts, refuses and names."""

from __future__ import annotations

import itertools
import random
import re

import pytest

from bridge.affine.mlir_runtime import context, ir
from bridge.affine.pass_manager import transform

PROVE = "builtin.module(func.func(bridge-prove-subscripts))"


def index(rng):
    """Return an expression of i and j, as MLIR and as Python spell it."""
    a, b, c = rng.choice([-2, -1, 0, 1, 2]), rng.choice([-1, 0, 1]), rng.randint(-4, 6)
    text = f"(i * {a} + j * {b} + {c})"
    divisor = rng.randint(2, 5)
    kind = rng.choice(["", "", " floordiv ", " mod "])
    return f"{text}{kind}{divisor}" if kind else text


def value(text, point):
    """Return what an expression or a condition is in an iteration."""
    return eval(text.replace("floordiv", "//").replace("mod", "%"), dict(zip("ij", point, strict=True)))


def nest(rng):
    """Return (loops, guards, subscripts): bounds and steps, (conditions, whether they hold), expressions."""
    loops = [(rng.randint(0, 3), rng.randint(2, 9), rng.randint(1, 3)) for _ in "ij"]
    relations = [">= 0", ">= 0", "== 0"]
    guards = [
        ([f"{index(rng)} {rng.choice(relations)}" for _ in range(rng.randint(1, 2))], rng.random() < 0.6)
        for _ in range(rng.randint(0, 3))
    ]
    return loops, guards, [index(rng) for _ in range(rng.randint(1, 2))]


def spell(loops, guards, subscripts, shape):
    """Return a function with one store."""
    memref = f"memref<{'x'.join(map(str, shape))}xf32>"
    subscripts = ", ".join(re.sub(r"\b([ij])\b", r"%\1", text) for text in subscripts)
    body = f"affine.store %c, %out[{subscripts}] : {memref}"
    for conditions, holds in reversed(guards):
        guard = f"affine.if affine_set<(i, j) : ({', '.join(conditions)})>(%i, %j)"
        body = f"{guard} {{ {body} }}" if holds else f"{guard} {{ }} else {{ {body} }}"
    for name, (low, high, step) in reversed(list(zip("ij", loops, strict=True))):
        body = f"affine.for %{name} = {low} to {high} step {step} {{ {body} }}"
    return f"func.func @f(%c: f32, %out: {memref}) {{ {body} return }}"


def executed(loops, guards, subscripts):
    """Return the element that each iteration stores to."""
    points = itertools.product(*(range(*loop) for loop in loops))
    return {
        point: [value(text, point) for text in subscripts]
        for point in points
        if all(all(value(c, point) for c in conditions) == holds for conditions, holds in guards)
    }


@pytest.mark.parametrize("seed", range(8))
def test_what_is_proven_is_what_all_iterations_do(seed):
    rng = random.Random(seed)
    refused = 0
    for _ in range(40):
        loops, guards, subscripts = nest(rng)
        elements = executed(loops, guards, subscripts)
        # As large as the elements need it, or sometimes one smaller; some are below zero anyway.
        largest = [max([0, *own]) for own in zip(*elements.values(), strict=True)] or [3] * len(subscripts)
        shape = [size + 1 - (size > 0 and rng.random() < 0.3) for size in largest]
        outside = {
            point
            for point, element in elements.items()
            if not all(0 <= index < size for index, size in zip(element, shape, strict=True))
        }
        with context(), ir.Location.unknown():
            remarks = transform(ir.Module.parse(spell(loops, guards, subscripts, shape)), PROVE)
        assert bool(remarks) == bool(outside), spell(loops, guards, subscripts, shape)
        for remark in remarks:
            ((words, _),) = remark.notes
            numbers = re.match(r"iteration \((\d+), (\d+)\) writes element \[(.*?)\]", words)
            point = int(numbers[1]), int(numbers[2])
            assert point in outside
            assert elements[point] == [int(n) for n in numbers[3].split(", ")]
            refused += 1
    assert 5 < refused < 35
