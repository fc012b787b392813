"""Test divisions of indices: what goes away has the same values."""

import pytest
import sympy
from torch.utils._sympy.functions import FloorDiv, ModularIndexing, PythonMod

from bridge.affine.translate.divisions import drop_divisions, solve_remainder, whole_quotients
from bridge.affine.translate.trace import iteration_variable

i, j, k = (iteration_variable(n) for n in range(3))
s0 = sympy.Symbol("s0", integer=True, positive=True)


def known(condition):
    """Return True if a condition holds for sizes of 2 or more.

    A polynomial is nonnegative if it is one in (s - 2) with nonnegative coefficients.
    """
    if condition in (sympy.true, sympy.false):
        return bool(condition)
    shifted = sympy.expand(condition.lhs.subs(s0, s0 + 2))
    return isinstance(condition, sympy.Ge) and all(c >= 0 for c in shifted.as_coefficients_dict().values())


def test_remainders_of_what_is_smaller():
    """Check that remainders of smaller numbers are dropped, for rows numbered by block and row; others are kept."""
    ranges = {i: (sympy.Integer(0), s0 - 1), j: (sympy.Integer(0), sympy.Integer(127))}
    row = 128 * i + j
    assert drop_divisions(4096 * ModularIndexing(row, 1, 128 * s0) + k, ranges, known) == sympy.expand(4096 * row + k)
    for kept in (ModularIndexing(row, 1, 127 * s0), ModularIndexing(row, 1, 64), FloorDiv(row, 3)):
        assert drop_divisions(kept, ranges, known) == kept


def test_quotients_of_what_is_below_their_divisor_are_zero():
    """Check that quotients below their divisor are zero: `row mod 128*s0 floordiv 2` needs only the division by 2."""
    ranges = {i: (sympy.Integer(0), s0 - 1), j: (sympy.Integer(0), sympy.Integer(127))}
    row = 128 * i + j
    assert drop_divisions(FloorDiv(row, 128 * s0) + k, ranges, known) == k
    assert drop_divisions(ModularIndexing(row, 2, 128 * s0), ranges, known) == FloorDiv(row, 2)
    assert drop_divisions(ModularIndexing(j, 1, 128), ranges, known) == j
    below_zero = FloorDiv(row - 1, 128 * s0)
    assert drop_divisions(below_zero, ranges, known) == below_zero


def test_guards_of_a_mask_did_not_take_remainders_away():
    """A sum of `s0*s0` elements in 4 parts: the last part is masked where it has no element any more."""
    part = FloorDiv(s0 * s0 + 3, 4)
    ranges = {i: (sympy.Integer(0), sympy.Integer(3)), j: (sympy.Integer(0), part - 1)}
    row = sympy.expand(i * part + j)
    guard = sympy.expand(s0 * s0 - 1 - row)
    remainder, quotient = ModularIndexing(row, 1, s0 * s0), FloorDiv(row, s0 * s0)
    for kept in (remainder, quotient):
        assert drop_divisions(kept, ranges, known) == drop_divisions(kept, ranges, known, (guard + 1,)) == kept
    assert drop_divisions(remainder, ranges, known, (j - 1, guard)) == row
    assert drop_divisions(quotient + k, ranges, known, (guard,)) == k
    below_zero = ModularIndexing(row - 1, 1, s0 * s0)
    assert drop_divisions(below_zero, ranges, known, (guard,)) == below_zero
    assert drop_divisions(below_zero, ranges, known, (guard, row - 1)) == row - 1


def test_multiples_of_a_symbolic_divisor_stayed_in_its_quotient():
    """Check that multiples of a symbolic divisor leave its quotient, as in a row of 4 heads of symbolic length."""
    ranges = {i: (sympy.Integer(0), sympy.Integer(3)), j: (sympy.Integer(0), s0 - 1)}
    assert drop_divisions(FloorDiv(i * s0 + j, s0), ranges, known) == i
    assert drop_divisions(ModularIndexing(i * s0 + j, s0, 4), ranges, known) == i
    assert drop_divisions(FloorDiv(i * s0 + 2 * j, s0), ranges, known) == i + FloorDiv(2 * j, s0)


def test_multiples_of_a_sum_stayed_in_its_quotient():
    """Check that multiples of a sum leave its quotient, as for `s0 - 1` tokens: no term alone is a multiple."""
    ranges = {i: (sympy.Integer(0), sympy.Integer(3)), j: (sympy.Integer(0), s0 - 2)}
    token = sympy.expand(i * (s0 - 1) + j)
    assert drop_divisions(FloorDiv(token, s0 - 1), ranges, known) == i
    assert drop_divisions(ModularIndexing(token, 1, s0 - 1), ranges, known) == j
    whole = whole_quotients(FloorDiv(sympy.expand(5 * k * (s0**2 - 1)), s0 - 1))
    assert sympy.expand(whole) == sympy.expand(5 * k * (s0 + 1))
    assert whole_quotients(FloorDiv(s0 * i - j, s0 - 1)) == FloorDiv(s0 * i - j, s0 - 1)
    assert drop_divisions(FloorDiv(token + 1, s0 - 1), ranges, known) == i + FloorDiv(j + 1, s0 - 1)
    for kept in (FloorDiv(i * s0 + j, s0 - 1), ModularIndexing(token, 1, s0)):
        assert drop_divisions(kept, ranges, known) == kept


def test_multiples_of_a_divisor_stayed_in_its_remainder():
    """Check that multiples of a divisor leave its remainder: sympy takes them out of a sum, but not of a product."""
    ranges = {i: (sympy.Integer(0), sympy.Integer(3)), j: (sympy.Integer(0), s0 - 1)}
    assert drop_divisions(ModularIndexing(4096 * i, 1, 4096), ranges, known) == 0
    assert drop_divisions(ModularIndexing(i * s0 + j, 1, s0), ranges, known) == j
    assert drop_divisions(ModularIndexing(2 * i * s0 + 2 * j, 2, s0), ranges, known) == j
    for kept in (ModularIndexing(i * s0 + 2 * j, 1, s0), ModularIndexing(i * s0 + j - 1, 1, s0)):
        assert drop_divisions(kept, ranges, known) == kept


@pytest.mark.parametrize(
    ("expr", "result"),
    [
        (FloorDiv(s0 * s0, s0), s0),
        (FloorDiv(i, FloorDiv(s0 * s0, s0)), FloorDiv(i, s0)),
        (FloorDiv(i * s0 * s0 + j + 1, s0), i * s0 + FloorDiv(j + 1, s0)),
        (FloorDiv(j, s0), FloorDiv(j, s0)),
        (FloorDiv(j, 2), FloorDiv(j, 2)),
    ],
    ids=str,
)
def test_whole_quotients(expr, result):
    assert whole_quotients(expr) == result
    at = {s0: 3, i: 2, j: 5}
    assert expr.subs(at) == result.subs(at)


@pytest.mark.parametrize(
    ("equation", "solution"),
    [
        (ModularIndexing(i - 1, 1, 2), (i, 1, 2)),
        (-ModularIndexing(i + 5, 1, 4), (i, 3, 4)),
        (ModularIndexing(8 * i + j + 1, 1, 4) - 3, (j, 2, 4)),
        (3 - PythonMod(j + 1, 4), (j, 2, 4)),
    ],
)
def test_a_remainder_is_solved_for_its_variable(equation, solution):
    """Check that the solution of a remainder holds for the same values as the equation."""
    assert solve_remainder(equation) == solution
    variable, value, divisor = solution
    for at in range(2 * divisor):
        assert (equation.xreplace({i: 3, j: 3} | {variable: at}) == 0) == (at % divisor == value)


@pytest.mark.parametrize(
    "equation",
    [
        i - 1,
        ModularIndexing(i, 1, 4) - 4,
        ModularIndexing(i, 1, 4) + j,
        2 * ModularIndexing(i, 1, 4) - 2,
        ModularIndexing(i, 2, 4),
        ModularIndexing(i + j, 1, 4),
        ModularIndexing(3 * i, 1, 4),
        ModularIndexing(i, 1, s0),
        ModularIndexing(i, 1, 4) - ModularIndexing(j, 1, 4),
    ],
)
def test_other_equations_are_not_solved(equation):
    assert solve_remainder(equation) is None
