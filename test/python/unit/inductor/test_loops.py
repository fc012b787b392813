"""Inductor's simplification of subscripts, asked less often."""

from __future__ import annotations

import pytest
import sympy
from torch._inductor import sizevars
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

from bridge.inductor.loops import _join, _joining_less

X, Y = sympy.symbols("x y", integer=True, nonnegative=True)
JOINED = (
    ModularIndexing(X + 3, 1, 7) + 7 * ModularIndexing(X + 3, 7, 8) + 56 * Y,
    3 * ModularIndexing(X, 2, 4) + 12 * FloorDiv(X, 8),
)
APART = (
    X + 7 * Y,
    ModularIndexing(X + 3, 1, 7) + 96 * ModularIndexing(FloorDiv(X + 3, 7) + Y, 1, 8),
    ModularIndexing(X, 1, 7) + 7 * ModularIndexing(Y, 7, 8),
)


@pytest.mark.parametrize("expr", [*JOINED, *APART], ids=str)
def test_terms_are_joined_as_by_inductor(expr):
    """Its patterns, which take milliseconds an index, are asked only where two terms divide the same."""
    asked = []

    def join(e):
        asked.append(e)
        return sizevars.join_dimensions(e)

    assert _join(join, expr) == sizevars.join_dimensions(expr)
    assert bool(asked) == (expr in JOINED) == (sizevars.join_dimensions(expr) != expr)


def test_two_threads_at_once_leave_inductors_function():
    """The second to come would have put back what the first had put there."""
    before = sizevars.join_dimensions
    first, second = _joining_less(), _joining_less()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert sizevars.join_dimensions is not before
    second.__exit__(None, None, None)
    assert sizevars.join_dimensions is before
