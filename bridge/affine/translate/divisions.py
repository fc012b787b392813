"""Take divisions out of indices: exact ones by symbols, and those of what is smaller; solve remainders."""

from __future__ import annotations

from collections.abc import Callable

import sympy
from torch.utils._sympy.functions import FloorDiv, Mod, ModularIndexing, PythonMod

from .access import ZERO, Ranges, bounds, exact_quotient, expand

#: Floor divisions and remainders.
DIVISIONS = (FloorDiv, ModularIndexing, Mod, PythonMod)


def whole_quotients(expr: sympy.Expr) -> sympy.Expr:
    """Return an expression with multiples of a symbolic divisor taken out of quotients.

    `(s*p + j) floordiv s` is `p + j floordiv s`, and `s*s floordiv s` is `s`; sympy does so for numbers only.
    """

    def taken_out(division: sympy.Expr) -> sympy.Expr:
        """Return a quotient as the sum of what divides exactly and of the quotient of the rest."""
        whole, rest = _whole_and_rest(*division.args)
        return whole + FloorDiv(rest, division.args[1])

    return expr.replace(lambda e: isinstance(e, FloorDiv) and not e.args[1].is_Integer, taken_out)


def _whole_and_rest(value: sympy.Expr, divisor: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr]:
    """Return (quotient of the terms that a divisor divides exactly, sum of the other terms)."""
    quotients = {part: exact_quotient(part, divisor) for part in _parts(expand(value), divisor)}
    whole = [quotient for quotient in quotients.values() if quotient is not None]
    return sympy.Add(*whole), sympy.Add(*[part for part, quotient in quotients.items() if quotient is None])


def _parts(value: sympy.Expr, divisor: sympy.Expr) -> list[sympy.Expr]:
    """Return the parts of an expanded sum that a divisor divides or not: terms, which a sum divides only together.

    Of `s*p - p + j` they are `s*p - p` and `j` by `s - 1`.
    """
    terms = sympy.Add.make_args(value)
    if not divisor.is_Add:
        return list(terms)
    parts: dict[sympy.Expr, list[sympy.Expr]] = {}
    for term in terms:
        factor, _ = term.as_independent(*divisor.free_symbols, as_Add=False)
        parts.setdefault(factor.as_coeff_Mul()[1], []).append(term)
    return [sympy.Add(*part) for part in parts.values()]


def drop_divisions(
    expr: sympy.Expr, ranges: Ranges, known: Callable[[sympy.Basic], bool], guards: tuple[sympy.Expr, ...] = ()
) -> sympy.Expr:
    """Return an index without its divisions of what is smaller than the divisor.

    For `p < 128*t`, `p mod 128*t` is `p`, and `p floordiv 128*t` is 0; `p + 128*t*q mod 128*t` is `p`, too.  By a
    divisor that is symbolic no affine expression can divide; loops that were cut where indices divide them leave those
    by numbers.  guards: expressions that are at or above zero where the index is used, as `128*t - 1 - p`.
    """

    def at_least_zero(value: sympy.Expr) -> bool:
        """Return True if no iteration has a value below 0, by the ranges alone or beside a guard."""
        spans = (bounds(expand(value - guard), ranges) for guard in (ZERO, *guards))
        return any(span is not None and _is_at_least_zero(span[0], known) for span in spans)

    def below(value: sympy.Expr, divisor: sympy.Expr) -> bool:
        """Return True if a value is proven to be at least 0, and below the divisor."""
        return at_least_zero(value) and at_least_zero(divisor - 1 - value)

    def quotient(value: sympy.Expr, divisor: sympy.Expr) -> sympy.Expr:
        """Return a quotient without what is proven to be less than one."""
        whole, rest = _whole_and_rest(value, divisor)
        return whole + (ZERO if below(rest, divisor) else FloorDiv(rest, divisor))

    def dropped(division: sympy.Expr) -> sympy.Expr:
        """Return a quotient, or what a remainder is of, where that is proven to be it but for whole multiples."""
        value, *by, divisor = division.args
        if isinstance(division, FloorDiv):
            return quotient(value, divisor)
        whole = sympy.Mul(*by, divisor)
        _, rest = _whole_and_rest(value, whole)
        if not below(rest, whole):
            return division
        return rest if by in ([], [1]) else quotient(rest, by[0])

    return expr.replace(lambda e: isinstance(e, DIVISIONS), dropped)


def _is_at_least_zero(size: sympy.Expr, known: Callable[[sympy.Basic], bool]) -> bool:
    """Return True if an expression of sizes is proven not to be negative."""
    return bool(size >= 0) if size.is_Integer else known(sympy.Ge(size, 0))


def solve_remainder(equation: sympy.Expr) -> tuple[sympy.Expr, int, int] | None:
    """Return (variable, value, divisor) where an expression is zero exactly if variable = value modulo the divisor.

    None of an expression that is no remainder by a number beside a number, or a remainder of several variables.

    >>> i, j = sympy.symbols("bridge_iv0 bridge_iv1", integer=True)
    >>> solve_remainder(3 - ModularIndexing(8 * i + j + 1, 1, 4))
    (bridge_iv1, 2, 4)
    """
    remainders = equation.atoms(*DIVISIONS[1:])
    if len(remainders) != 1:
        return None
    remainder = remainders.pop()
    value, *by, divisor = remainder.args
    others = (expand(remainder - equation), expand(remainder + equation))
    wanted = next((other for other in others if other.is_Integer), None)
    if wanted is None or by not in ([], [1]) or not divisor.is_Integer:
        return None
    _, rest = _whole_and_rest(value, divisor)
    offset, variable = rest.as_coeff_Add()
    if not variable.is_Symbol or not 0 <= wanted < divisor:
        return None
    return variable, int(wanted - offset) % int(divisor), int(divisor)
