"""Test affine maps and sets as sympy expressions: with the values that MLIR gives them."""

from __future__ import annotations

import pytest
import sympy
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

from bridge.affine.mlir_runtime import context, ir
from bridge.lowering.lift.index import apply_map, constraints, may_be_negative, with_modulo

X, Y = sympy.symbols("x y", integer=True, nonnegative=True)


def applied(text, operands):
    with context():
        return apply_map(ir.AffineMapAttr(ir.Attribute.parse(f"affine_map<{text}>")).value, operands)


@pytest.mark.parametrize(
    ("expression", "exact"),
    [
        ("d0 * 3 + s0", lambda x, y: 3 * x + y),
        ("(d0 - 5) mod 4", lambda x, y: (x - 5) % 4),
        ("(d0 - 5) floordiv 4", lambda x, y: (x - 5) // 4),
        ("d0 ceildiv 4 + s0 mod 3", lambda x, y: -(-x // 4) + y % 3),
        ("d0 - (d0 floordiv 8) * 8", lambda x, y: x % 8),
    ],
)
def test_a_map_has_mlirs_values(expression, exact):
    (found,) = applied(f"(d0)[s0] -> ({expression})", [X, Y])
    for x in range(12):
        assert found.subs({X: x, Y: x + 2}) == exact(x, x + 2)


def test_a_remainder_is_written_as_inductor_has_it():
    assert with_modulo(X - 8 * FloorDiv(X, 8) + Y) == ModularIndexing(X, 1, 8) + Y


def test_a_remainder_of_what_may_be_negative_stays_a_difference():
    expression = X - 3 - 8 * FloorDiv(X - 3, 8)
    assert with_modulo(expression) == expression


@pytest.mark.parametrize(
    ("expression", "negative"), [(X + 2 * Y, False), (X - Y, True), (FloorDiv(X - 1, 2) + 4, True), (X * 0, False)]
)
def test_may_be_negative(expression, negative):
    assert may_be_negative(expression) is negative


def test_a_set_is_equalities_and_inequalities():
    with context():
        integer_set = ir.Attribute.parse("affine_set<(d0)[s0] : (d0 - 3 >= 0, s0 - d0 == 0)>")
        found = constraints(integer_set, [X, Y])
    assert sorted(found, key=lambda c: c[1]) == [(X - 3, False), (Y - X, True)]
