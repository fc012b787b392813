"""Sizes that are known to be multiples of a number: `s` is written `k*t`, and so are its parts.

Inductor gives the halves of a row of `s` elements the extent `s // 2` or `(s + 1) // 2`, which no arithmetic relates
to `s`.  Where the graph's guards leave no other remainder than 0, `s = 2*t`, and the halves are `t`.

Sizes that depend on data carry no sign, which arithmetic needs: such a size is `1*t`, and `t` has one.

Tensors whose sizes are each marked as dynamic have symbols of their own, also where a guard says that two are equal.
All of these are one symbol here.

Inductor's strides have `Max(1, s)` for a size that may be 0.  Where no node of a group has an iteration then, it is
`s`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import sympy
from torch.utils._sympy.functions import FloorDiv, Max, Mod

from .access import expand
from .divisions import DIVISIONS, whole_quotients

#: The largest divisor whose remainders are looked at one by one.
MAX_DIVISOR = 16


@dataclass(frozen=True)
class Multiples:
    """Change variables: some sizes are each a number times a new variable.

    wholes: `s -> k*t`, and what equals something of the new variables, `u -> t`, or a number, `s floordiv t -> k`;
    parts: `t -> (s, k)`; unproven: conditions under which more sizes would be multiples; equal: symbols that have
    another one in their place, which all else here is in.
    """

    wholes: dict[sympy.Expr, sympy.Expr] = field(default_factory=dict)
    parts: dict[sympy.Symbol, tuple[sympy.Symbol, int]] = field(default_factory=dict)
    unproven: tuple[sympy.Eq, ...] = ()
    equal: Mapping[sympy.Symbol, sympy.Expr] = field(default_factory=dict)

    def rewrite(self, expr: sympy.Expr) -> sympy.Expr:
        """Return an expression of Inductor's in the new variables."""
        expr = sympy.sympify(expr).xreplace(self.equal)
        return whole_quotients(expr.xreplace(self.wholes) if self.wholes else expr)

    def restore(self, expr: sympy.Expr) -> sympy.Expr:
        """Return an expression in Inductor's variables: `k*t` is `s` again, and `t` alone `s // k`."""
        if not self.parts or not expr.free_symbols & self.parts.keys():
            return expr
        if isinstance(expr, sympy.core.relational.Relational):
            return expr.func(*map(self.restore, expr.args))
        return sympy.Add(*map(self._restore_term, sympy.Add.make_args(expand(expr))))

    def same(self, expr: sympy.Expr) -> sympy.Expr:
        """Return an expression of Inductor's as `restore` writes it."""
        return self.restore(expand(self.rewrite(expr)))

    def _restore_term(self, term: sympy.Expr) -> sympy.Expr:
        """Return a term in Inductor's variables."""
        exact = {t: s / k for t, (s, k) in self.parts.items()}
        if term.is_polynomial(*self.parts) and (whole := term.xreplace(exact)).as_coeff_Mul()[0].is_Integer:
            return whole
        return term.xreplace({t: FloorDiv(s, k) for t, (s, k) in self.parts.items()})


def find_multiples(
    expressions: Iterable[sympy.Expr],
    facts: Iterable[sympy.Basic],
    known: Callable[[sympy.Basic], bool],
    assume: bool = False,
    equal: Mapping[sympy.Symbol, sympy.Expr] = MappingProxyType({}),
    there: Iterable[sympy.Expr] = (),
) -> Multiples:
    """Return the sizes that are divided in `expressions` and proven to be multiples of their divisors.

    facts: relations that hold for every size; known(condition): whether one follows by other means;
    assume: take those that are not proven for multiples too; equal: symbols, and what stands for each of them;
    there: sizes that are at least 1 wherever something is done.
    """
    expressions, facts = ([sympy.sympify(expr).xreplace(equal) for expr in some] for some in (expressions, facts))
    divided = [expr for expr in expressions if expr.has(*DIVISIONS)]
    numbers = _known_quotients(facts) if divided else {}
    facts = [_by_quotients(fact).xreplace(numbers) for fact in facts if isinstance(fact, sympy.Eq)] if divided else []
    divided = [expr.xreplace(numbers) for expr in divided]
    found, divisors = None, _without_sign(expressions, known)
    unproven: dict[sympy.Basic, None] = {}
    while found is None or divisors != {s: k for s, k in found.parts.values()}:
        found = _multiples(divisors, (), known)
        own_facts = [found.rewrite(fact) for fact in facts]
        for part, divisor in _divisors(map(found.rewrite, divided)):
            size, multiple = found.parts.get(part, (part, 1))
            divides = sympy.Eq(Mod(size, multiple * divisor), 0)
            proven = known(divides) or _leave_no_remainder(own_facts, part, divisor)
            unproven.update({} if proven else {divides: None})
            if proven or assume:
                divisors[size] = math.lcm(divisors.get(size, 1), multiple * divisor)
    found = _multiples(divisors, tuple(unproven), known)
    wholes = {**_without_maxima(there, found), **numbers, **_equal_sizes(facts, found), **found.wholes}
    return replace(found, wholes=wholes, equal=equal)


def _without_maxima(there: Iterable[sympy.Expr], found: Multiples) -> dict[sympy.Expr, sympy.Expr]:
    """Return what the larger one of 1 and a size is, for sizes that are at least 1."""
    pairs = [(maximum(1, size), found.rewrite(size)) for size in there for maximum in (Max, sympy.Max)]
    return {larger: size for larger, size in pairs if not larger.is_Symbol}


def _known_quotients(facts: Iterable[sympy.Basic]) -> dict[sympy.Expr, sympy.Integer]:
    """Return the quotients of sizes that facts say are a number, as `s floordiv (s floordiv 7)` of `s` in windows."""
    sides = [side for fact in facts if isinstance(fact, sympy.Eq) for side in (fact.args, fact.args[::-1])]
    return {quotient: number for quotient, number in sides if isinstance(quotient, FloorDiv) and number.is_Integer}


def _equal_sizes(facts: list[sympy.Basic], found: Multiples) -> dict[sympy.Symbol, sympy.Expr]:
    """Return sizes that equal an expression of others: of a weight for half a row of `s` elements, `u == s // 2`."""
    sides = [side for fact in facts if isinstance(fact, sympy.Eq) for side in (fact.args, fact.args[::-1])]
    values = {name: expand(found.rewrite(value)) for name, value in sides if name.is_Symbol}
    return {
        name: value
        for name, value in values.items()
        if value.free_symbols and value.free_symbols <= found.parts.keys() and not value.has(*DIVISIONS)
    }


def _without_sign(expressions: list[sympy.Expr], known: Callable[[sympy.Basic], bool]) -> dict[sympy.Symbol, int]:
    """Return the sizes that only `known` knows not to be negative, each as a multiple of 1."""
    sizes = set().union(*[sympy.sympify(expr).free_symbols for expr in expressions])
    return {s: 1 for s in sorted(sizes, key=str) if s.is_nonnegative is None and known(sympy.Ge(s, 0))}


def _multiples(
    divisors: dict[sympy.Symbol, int], unproven: tuple[sympy.Eq, ...], known: Callable[[sympy.Basic], bool]
) -> Multiples:
    """Return the change of variables for sizes that are multiples of `divisors`."""
    parts = {sympy.Symbol(f"{s}_{k}", integer=True, **_sign(s, known)): (s, k) for s, k in divisors.items()}
    return Multiples({s: k * t for t, (s, k) in parts.items()}, parts, unproven)


def _divisors(expressions: Iterable[sympy.Expr]) -> dict[tuple[sympy.Symbol, int], None]:
    """Return (size, divisor) for every size that decides about the remainder of a division by a number."""
    pairs = {}
    for division in set().union(*[expr.atoms(*DIVISIONS) for expr in expressions]):
        divided = expand(division.args[0])
        for divisor in division.args[1:]:
            if divisor.is_Integer and divisor > 1:
                open_ = [s for s in divided.free_symbols if s.is_nonnegative and divided.coeff(s) % divisor != 0]
                pairs.update(dict.fromkeys((s, int(divisor)) for s in open_))
    return dict(sorted(pairs.items(), key=str))


def _by_quotients(fact: sympy.Basic) -> sympy.Basic:
    """Return the fact with remainders written by quotients: sympy takes whole multiples out of quotients only."""

    def quotient(division: sympy.Basic) -> sympy.Expr:
        """Return a remainder written by a quotient."""
        *inner, divisor = division.args
        value = FloorDiv(*inner) if len(inner) > 1 else inner[0]
        return value - divisor * FloorDiv(value, divisor)

    return fact.replace(lambda e: isinstance(e, DIVISIONS[1:]), quotient)


def _sign(size: sympy.Symbol, known: Callable[[sympy.Basic], bool]) -> dict[str, bool]:
    """Return the assumption about the sign of a size, for the symbol of its part."""
    return {"positive": True} if size.is_positive or known(sympy.Ge(size, 1)) else {"nonnegative": True}


def _leave_no_remainder(facts: list[sympy.Eq], size: sympy.Symbol, divisor: int) -> bool:
    """Return True if each remainder but 0 contradicts a fact: all of them one, or of few remainders each another."""
    facts = [fact for fact in facts if size in fact.free_symbols]
    if any(_is_false_for_remainders(fact, size, divisor) for fact in facts):
        return True
    quotient = sympy.Dummy("quotient", integer=True, nonnegative=True)
    return (bool(facts) and divisor <= MAX_DIVISOR) and all(
        any(_is_false(fact.xreplace({size: divisor * quotient + remainder})) for fact in facts)
        for remainder in range(1, divisor)
    )


def _is_false_for_remainders(fact: sympy.Eq, size: sympy.Symbol, divisor: int) -> bool:
    """Return True if a fact holds for no `divisor * quotient + remainder` with a remainder that is not 0."""
    quotient = sympy.Dummy("quotient", integer=True, nonnegative=True)
    remainder = sympy.Dummy("remainder", integer=True, positive=True)

    def settled(division: sympy.Expr) -> sympy.Expr:
        """Return the quotient of the remainder and a number where it is the same for every remainder."""
        value, by = division.args
        offset = value - remainder
        if by != divisor or not offset.is_Integer or (offset + 1) // by != (offset + divisor - 1) // by:
            return division
        return (offset + 1) // by

    own = fact.xreplace({size: divisor * quotient + remainder}).replace(lambda e: isinstance(e, FloorDiv), settled)
    if not isinstance(own, sympy.Eq) or _is_false(own):
        return _is_false(own)
    factor, constant = (part := expand(own.lhs - own.rhs)).coeff(remainder), part.subs(remainder, 0)
    if not (factor.is_Integer and constant.is_Integer) or expand(part - factor * remainder - constant) != 0:
        return False
    return factor != 0 and (constant % factor != 0 or not 0 < -constant // factor < divisor)


def _is_false(fact: sympy.Basic) -> bool:
    """Return True if a fact holds for no size."""
    if not isinstance(fact, sympy.Eq):
        return fact == sympy.false
    return expand(fact.lhs - fact.rhs).is_zero is False
