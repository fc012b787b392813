"""Test numbers that are computed of sizes and are no integers: by operations on floats, or refused."""

from __future__ import annotations

import math
import operator
from typing import Any

import pytest
import sympy
from torch.utils._sympy.functions import FloatPow, FloatTrueDiv, IntTrueDiv, OpaqueUnaryFn_sqrt, ToFloat, TruncToFloat

from bridge.affine.translate.real_sizes import compute_real, is_real
from bridge.reasons import Reason, Unsupported

SIZE = sympy.Symbol("s0", integer=True, positive=True)

_EXACT: dict[str, Any] = {
    "add": operator.add,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "pow": math.pow,
    "sqrt": math.sqrt,
}


def value(expr, size):
    """Compute an expression for one size."""
    integers: list[sympy.Expr] = []

    def integer(part):
        integers.append(part)
        return float(part.subs(SIZE, size))

    found = compute_real(expr, integer, float, lambda name, operands: _EXACT[name](*operands))
    assert all(part.is_integer for part in integers)
    return found


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (FloatTrueDiv(2.0, ToFloat(SIZE) - 1.0), lambda s: 2.0 / (s - 1.0)),
        (IntTrueDiv(SIZE, 3), lambda s: s / 3),
        (OpaqueUnaryFn_sqrt(SIZE + 1), lambda s: math.sqrt(s + 1)),
        (FloatPow(ToFloat(SIZE), -0.5), lambda s: s**-0.5),
        (3.0 * OpaqueUnaryFn_sqrt(ToFloat(2 * SIZE + 1)), lambda s: 3.0 * math.sqrt(2 * s + 1)),
        (ToFloat(SIZE) * FloatTrueDiv(ToFloat(SIZE), 7.0), lambda s: s * (s / 7.0)),
    ],
)
def test_the_same_number_for_every_size(expr, expected):
    assert is_real(expr)
    for size in (2, 3, 50, 4097):
        assert value(expr, size) == expected(size)


def test_integers_are_none():
    assert not any(map(is_real, (SIZE, 2 * SIZE + 1, SIZE // 3, sympy.Max(SIZE, 3))))


def test_what_no_operation_computes_is_refused():
    with pytest.raises(Unsupported) as refusal:
        value(TruncToFloat(FloatTrueDiv(2.0, ToFloat(SIZE))), 2)
    assert refusal.value.reason is Reason.non_affine_index
