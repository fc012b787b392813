"""Access relations: linear index expressions of Inductor recovered as subscripts of a ranked memref.

Inductor addresses a buffer with one linear expression, `s0*i + j + 4096`, which is not affine when a
stride is symbolic.  All accesses of a group to one buffer are looked at together, a chain of strides
`S0 > S1 > ... > 1` is chosen from their coefficients, and every access becomes a list of affine
subscripts, each proven to lie inside its dimension.  In-bounds subscripts are what makes two different
subscript lists two different addresses, so nothing is assumed here: what is not proven is refused.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import sympy
from torch.utils._sympy.functions import FloorDiv, Mod, ModularIndexing, PythonMod

from ...reasons import Reason, Unsupported

ZERO, ONE = sympy.Integer(0), sympy.Integer(1)

#: Inclusive (low, high).
Span: TypeAlias = tuple[sympy.Expr, sympy.Expr]

#: Spans of variables.
Ranges: TypeAlias = dict[sympy.Symbol, Span]

#: (coefficient, atom): a linear expression is the sum of their products.
Term: TypeAlias = tuple[sympy.Expr, sympy.Expr]

#: (value, divisor) -> their quotient, None where there is none.
Quotient: TypeAlias = Callable[[sympy.Expr, sympy.Expr], "sympy.Expr | None"]


@dataclass(frozen=True, eq=False)
class LinearAccess:
    """Hold one read or write of a buffer inside a nest; compared by identity.

    index: linear element offset, over iteration variables and size symbols.
    ranges: of every variable of `index`, where the access executes: the same index under another guard
    is another access.
    guards: expressions that are at or above zero where it executes, of several variables those that `ranges` misses.
    """

    buffer: str
    index: sympy.Expr
    ranges: Ranges
    is_write: bool
    guards: tuple[sympy.Expr, ...] = ()

    @functools.cached_property
    def terms(self) -> list[Term]:
        """Return the terms of the index."""
        return terms(self.index)

    @functools.cached_property
    def is_dead(self) -> bool:
        """Return True if no iteration executes it: under guards that exclude each other its index may be anything."""
        return any(expand(high - low).is_negative for low, high in self.ranges.values())


@dataclass
class View:
    """Hold a buffer seen as a ranked memref: strides in elements (row-major chain) and the extents they imply."""

    buffer: str
    strides: list[sympy.Expr]
    sizes: list[sympy.Expr]
    subscripts: dict[LinearAccess, list[sympy.Expr]] = field(default_factory=dict)


class Prover:
    """Prove relations of sizes by Inductor's symbolic shape environment.

    known(condition) -> bool: true only if the sympy relation holds for every admitted size.
    hint(expr) -> int: a typical value, used for ordering only.
    """

    def __init__(self, known: Callable[[sympy.Basic], bool], hint: Callable[[sympy.Expr], int]):
        """Remember the answers of `known`."""
        self.known = functools.cache(known)
        self.hint = hint

    def over(self, restore: Callable[[sympy.Basic], sympy.Basic]) -> Prover:
        """Return the same prover, asked in other variables, which `restore` replaces by those of this one."""
        return Prover(lambda condition: self.known(restore(condition)), lambda expr: self.hint(restore(expr)))

    def less_equal(self, a: sympy.Expr, b: sympy.Expr) -> bool:
        """Return True if `a <= b` is proven for every size."""
        difference = expand(b - a)
        if difference.is_Integer:
            return bool(difference >= 0)
        least = _without_quotients(difference)
        return bool(self.known(sympy.Ge(difference, 0)) or (least != difference and self.known(sympy.Ge(least, 0))))


def expand(expr: sympy.Expr) -> sympy.Expr:
    """Return the expanded expression; sympy.expand, which is slow, is called only where it may be needed.

    Inductor wraps some indices (of `cat`) in `Identity` to keep sympy's hands off them: it means its argument.
    """
    return expr if expr.is_Atom else sympy.expand(expr, identity=True)


def _without_quotients(size: sympy.Expr) -> sympy.Expr:
    """Return a size without quotients by numbers, that is nowhere at or above zero where the size is below.

    `16 * (s floordiv 16) <= s`: so many samples the frames of 16 have together.
    """
    for quotient in sorted(size.atoms(FloorDiv), key=str):
        value, divisor = quotient.args
        factor = size.coeff(quotient)
        rest = expand(size - factor * quotient)
        sign = _factored(factor).is_nonnegative, _factored(factor).is_nonpositive
        if not (divisor.is_Integer and divisor > 0 and any(sign)) or rest.has(quotient):
            continue
        size = expand(divisor * rest + factor * (value - divisor + 1 if sign[0] else value))
    return size


def bounds(expr: sympy.Expr, ranges: Ranges) -> Span | None:
    """Return inclusive bounds of an affine expression over a box; None where a sign is unknown."""
    return _sum_bounds(terms(expr), ranges)


def _sum_bounds(parts: list[Term], ranges: Ranges) -> Span | None:
    """Return inclusive bounds of a sum of terms; None where a sign is unknown."""
    low = high = ZERO
    for coefficient, atom in parts:
        term = _term_bounds(coefficient, atom, ranges)
        if term is None:
            return None
        low, high = low + term[0], high + term[1]
    return expand(low), expand(high)


def _term_bounds(coefficient: sympy.Expr, atom: sympy.Expr, ranges: Ranges) -> Span | None:
    """Return inclusive bounds of one term; None where its sign is unknown."""
    if atom == 1:
        return coefficient, coefficient
    span = atom_bounds(atom, ranges)
    if span is None:
        return None
    factored = _factored(coefficient)
    if factored.is_nonnegative:
        return coefficient * span[0], coefficient * span[1]
    if factored.is_nonpositive:
        return coefficient * span[1], coefficient * span[0]
    return None


@functools.cache
def _factored(coefficient: sympy.Expr) -> sympy.Expr:
    """Return a coefficient whose sign sympy finds if it finds that of each factor: not of `s*t - t`, as it is."""
    return sympy.factor(coefficient) if coefficient.is_Add and coefficient.is_nonnegative is None else coefficient


def _magnitude(coefficient: sympy.Expr) -> sympy.Expr:
    """Return the absolute value of a coefficient, without a function where the sign is known."""
    return expand(abs(_factored(coefficient)))


def atom_bounds(atom: sympy.Expr, ranges: Ranges) -> Span | None:
    """Return inclusive bounds of an iteration variable, `x floordiv d` or `x floordiv d mod m`."""
    if atom in ranges:
        return ranges[atom]
    if isinstance(atom, (ModularIndexing, Mod, PythonMod)):
        return (ZERO, atom.args[-1] - 1) if atom.args[-1].is_positive else None
    if isinstance(atom, FloorDiv) and atom.args[1].is_Integer and atom.args[1] > 0:
        inner = bounds(atom.args[0], ranges)
        return None if inner is None else tuple(sympy.floor(b / atom.args[1]) for b in inner)
    return None


def divide_constraint(expr: sympy.Expr, ranges: Ranges, known: Callable[[sympy.Basic], bool]) -> sympy.Expr:
    """Return an expression that is at least zero where `expr` is, without a symbolic stride where possible.

    `t - 1 - t*p - j >= 0` with `0 <= j < t` says that `p <= 0`.
    """
    parts = terms(expr)
    strides = {_magnitude(c) for c, atom in parts if atom != 1 and not c.is_Integer}
    for stride in sorted(strides, key=str):
        quotients = [(exact_quotient(c, stride), c, atom) for c, atom in parts]
        upper = [(q, atom) for q, c, atom in quotients if q is not None and atom != 1]
        lower = [(c, atom) for q, c, atom in quotients if q is None or atom == 1]
        span = _sum_bounds(lower, ranges)
        if span is None:
            continue
        digit = _floor_quotient(span[0], stride)
        if known(sympy.Ge(span[0] - digit * stride, 0)) and known(sympy.Gt((digit + 1) * stride - span[1], 0)):
            return _linear([*upper, (digit, ONE)])
    return expr


def terms(expr: sympy.Expr) -> list[Term]:
    """Split into (coefficient, atom): atoms are variables or floordiv / mod of them, coefficients are sizes."""
    coefficients: dict[sympy.Expr, sympy.Expr] = {}
    for term in sympy.Add.make_args(expand(expr)):
        coefficient, atom = _split_term(term)
        coefficients[atom] = coefficients.get(atom, ZERO) + coefficient
    return [(coefficient, atom) for atom, coefficient in coefficients.items()]


def _split_term(term: sympy.Expr) -> Term:
    """Split a product; Unsupported(non_affine_index) if it is not affine in the iteration variables."""
    if term.is_Symbol and is_iteration_variable(term):
        return ONE, term
    if not is_iteration_atom(term):
        return term, ONE
    factors = sympy.Mul.make_args(term)
    atoms = [f for f in factors if is_iteration_atom(f)]
    if len(atoms) > 1 or not isinstance(atoms[0], (sympy.Symbol, FloorDiv, Mod, ModularIndexing, PythonMod)):
        raise Unsupported(Reason.non_affine_index, f"{term} is not affine in the iteration variables")
    return sympy.Mul(*[f for f in factors if f is not atoms[0]]), atoms[0]


def is_iteration_atom(expr: sympy.Expr) -> bool:
    """Return True if an expression varies with the iteration, and not with the sizes alone."""
    return any(is_iteration_variable(s) for s in expr.free_symbols)


def is_iteration_variable(symbol: sympy.Symbol) -> bool:
    """Return True if a symbol has the prefix that this package gives iteration variables; sizes never do."""
    return symbol.name.startswith("bridge_iv")


def delinearise(buffer: str, accesses: list[LinearAccess], numel: sympy.Expr, prover: Prover) -> View:
    """Return the finest stride chain under which every access is proven in bounds.

    Strides that are no multiples of each other (Inductor pads rows) are looked at where the others are not enough.
    Raises Unsupported(subscript_out_of_bounds) if even one dimension over the whole storage is not proven.
    """
    for quotient in (exact_quotient, _padded_quotient):
        view = _delinearise(buffer, accesses, numel, prover, quotient)
        if view is not None:
            return view
    raise Unsupported(Reason.subscript_out_of_bounds, f"{buffer}: access not proven inside {numel} elements")


def _delinearise(
    buffer: str, accesses: list[LinearAccess], numel: sympy.Expr, prover: Prover, quotient: Quotient
) -> View | None:
    """Return the finest view by strides with a `quotient` by each other; None if an access is not proven in bounds."""
    found = {_magnitude(c) for a in accesses if not a.is_dead for c, atom in a.terms if atom != 1}
    while True:
        chain = _stride_chain(found, prover, quotient)
        sizes = [_outer_size(numel, chain[0], prover), *itertools.starmap(quotient, itertools.pairwise(chain))]
        sizes = _sizes_of_last(numel, chain, sizes, prover)
        view, culprit = _try_chain(View(buffer, chain, sizes), accesses, prover)
        if culprit <= 0:
            return view
        found.remove(chain[culprit - 1])


def _stride_chain(found: set[sympy.Expr], prover: Prover, quotient: Quotient) -> list[sympy.Expr]:
    """Return descending strides, each with a `quotient` by the next, ending in 1."""
    chain: list[sympy.Expr] = [ONE]
    for stride in sorted(found, key=lambda s: (prover.hint(s), str(s))):
        if stride != chain[-1] and quotient(stride, chain[-1]) is not None:
            chain.append(stride)
    return chain[::-1]


def _padded_quotient(value: sympy.Expr, divisor: sympy.Expr) -> sympy.Expr | None:
    """Return how many rows of `divisor` elements are in `value`; padding may follow the last."""
    if value.is_Integer and divisor.is_Integer:
        return value // divisor
    return exact_quotient(value, divisor)


def exact_quotient(value: sympy.Expr, divisor: sympy.Expr) -> sympy.Expr | None:
    """Return `value / divisor` if it is a polynomial with integer coefficients, else None."""
    if value == divisor:
        return ONE
    if value.is_Integer and divisor.is_Integer:
        quotient, rest = divmod(int(value), int(divisor))
        return sympy.Integer(quotient) if rest == 0 else None
    quotient = expand(value / divisor)
    if divisor.is_Add:
        quotient = expand(sympy.cancel(quotient))
    numerator, denominator = quotient.as_numer_denom()
    if denominator != 1 or not all(c.is_Integer for c in numerator.as_coefficients_dict().values()):
        return None
    return quotient


def _try_chain(view: View, accesses: list[LinearAccess], prover: Prover) -> tuple[View | None, int]:
    """Return (view, -1) if proven, (None, k) if dimension k holds a subscript that is not proven in bounds."""
    done: dict[Hashable, list[sympy.Expr] | int] = {}
    for access in accesses:
        key = access.index, tuple(access.ranges.items()), access.guards
        if key not in done:
            done[key] = _proven_subscripts(access, view.strides, view.sizes, prover)
        subscripts = done[key]
        if isinstance(subscripts, int):
            return None, subscripts
        view.subscripts[access] = subscripts
    return view, -1


def _outer_size(numel: sympy.Expr, stride: sympy.Expr, prover: Prover) -> sympy.Expr:
    """Return numel / stride, rounded up where that is known: the outermost extent takes no part in any address."""
    exact = exact_quotient(numel, stride)
    if exact is not None:
        return exact
    whole = _rounded_up(numel, stride, prover)
    if whole is not None:
        return whole
    quotient = expand(sympy.cancel(numel / stride))
    constant = quotient.as_coeff_Add()[0]
    return quotient - constant + sympy.ceiling(constant)


def _rounded_up(numel: sympy.Expr, stride: sympy.Expr, prover: Prover) -> sympy.Expr | None:
    """Return how many strides a number of elements has that ends inside of the last; None where none is known to.

    64 of 192 columns are `192*s*t - 128` elements, from the first to the last, if a batch has `t` rows of `s` tokens.
    """
    if stride.is_Integer:
        return None
    names = {division: sympy.Dummy() for division in (numel + stride).atoms(sympy.Function)}
    found = {name: division for division, name in names.items()}
    quotient, rest = (part.xreplace(found) for part in sympy.div(numel.xreplace(names), stride.xreplace(names)))
    inside = prover.less_equal(rest, ZERO) and prover.less_equal(ONE - stride, rest)
    return exact_quotient(quotient, ONE) if inside else None


def _sizes_of_last(
    numel: sympy.Expr, chain: list[sympy.Expr], sizes: list[sympy.Expr], prover: Prover
) -> list[sympy.Expr]:
    """Return sizes of which the last index has all elements, as far as these are known.

    A buffer may end inside of its last row, as columns of a wider one do: lanes without a guard would read behind it.
    """
    sizes, left = list(sizes), numel
    for position in range(1, len(sizes)):
        left = expand(left - (sizes[position - 1] - 1) * chain[position - 1])
        if prover.less_equal(sizes[position] * chain[position], left):
            break
        sizes[position] = _outer_size(left, chain[position], prover)
    return sizes


def _proven_subscripts(
    access: LinearAccess, chain: list[sympy.Expr], sizes: list[sympy.Expr], prover: Prover
) -> list[sympy.Expr] | int:
    """Return the subscripts of an access, or the dimension in which they are not proven in bounds."""
    if access.is_dead:
        return [ZERO] * len(chain)
    parts = _distribute(access, chain)
    culprit = _place_constant(parts, chain, access.ranges)
    if culprit is None:
        culprit = _out_of_bounds(parts, access, sizes, prover)
    return culprit if culprit is not None else [_linear(part) for part in parts]


def _distribute(access: LinearAccess, chain: list[sympy.Expr]) -> list[list[Term]]:
    """Return the terms of each subscript: a term goes to the largest stride that divides it, constants to the last."""
    parts: list[list[Term]] = [[] for _ in chain]
    for coefficient, atom in access.terms:
        position, quotient = (-1, coefficient) if atom == 1 else _position(coefficient, chain)
        parts[position].append((quotient, atom))
    return parts


def _position(coefficient: sympy.Expr, chain: list[sympy.Expr]) -> tuple[int, sympy.Expr]:
    """Return the position of the largest stride that divides a coefficient, and the quotient."""
    for position, stride in enumerate(chain):
        quotient = exact_quotient(coefficient, stride)
        if quotient is not None:
            return position, quotient
    return len(chain) - 1, coefficient


def _place_constant(parts: list[list[Term]], chain: list[sympy.Expr], ranges: Ranges) -> int | None:
    """Move digits of the constant outward, so that every lower part starts at or above zero.

    Returns the dimension whose bounds are unknown, None if there is no such.
    """
    for position, stride in enumerate(chain[:-1]):
        lower = [
            (c * s, atom)
            for part, s in zip(parts[position + 1 :], chain[position + 1 :], strict=True)
            for c, atom in part
        ]
        span = _sum_bounds(lower, ranges)
        if span is None:
            return position + 1
        digit = _floor_quotient(span[0], stride)
        if digit != 0:
            parts[position].append((digit, ONE))
            parts[-1].append((expand(-digit * stride), ONE))
    return None


def _floor_quotient(value: sympy.Expr, stride: sympy.Expr) -> sympy.Expr:
    """Return floor(value / stride) if it is a polynomial in the sizes; else a part of it, or 0."""
    whole = exact_quotient(value, stride)
    if whole is not None:
        return whole
    exact = {term: exact_quotient(term, stride) for term in sympy.Add.make_args(value)}
    quotient = sympy.Add(*[q for q in exact.values() if q is not None])
    rest = sympy.Add(*[term for term, q in exact.items() if q is None])
    return quotient + rest // stride if rest.is_Integer and stride.is_Integer else quotient


def _linear(part: list[Term]) -> sympy.Expr:
    """Return the sum of the terms."""
    return expand(sympy.Add(*[c * atom for c, atom in part]))


def _out_of_bounds(
    parts: list[list[Term]], access: LinearAccess, sizes: list[sympy.Expr], prover: Prover
) -> int | None:
    """Return the innermost dimension whose subscript is not proven in bounds; None if all are."""
    for position in reversed(range(len(sizes))):
        if not _is_inside(parts[position], sizes[position], access, prover):
            return position
    return None


def _is_inside(part: list[Term], size: sympy.Expr, access: LinearAccess, prover: Prover) -> bool:
    """Return True if a subscript is proven in bounds, by its variables' ranges or a guard such as `7*i + j <= 52`."""
    box = _sum_bounds(part, access.ranges)
    below = itertools.chain([box], _bounds_by_guards(part, access, -1))
    above = itertools.chain([box], _bounds_by_guards(part, access, 1))
    starts = any(span is not None and prover.less_equal(ZERO, span[0]) for span in below)
    return starts and any(span is not None and prover.less_equal(span[1], size - 1) for span in above)


def _bounds_by_guards(part: list[Term], access: LinearAccess, sign: int) -> Iterator[Span | None]:
    """Yield bounds of `part + sign * g` for each guard `g >= 0`: upper ones of `part` for sign 1, lower ones for -1."""
    for guard in access.guards:
        for implied in (guard, _without_remainders(guard, access.ranges)):
            yield bounds(_linear(part) + sign * implied, access.ranges)


def _without_remainders(guard: sympy.Expr, ranges: Ranges) -> sympy.Expr:
    """Return an expression that is at least zero where a guard is, with bounds of remainders in their place.

    `x mod m - 1 >= 0` says that `x - 1 >= 0`, if `x` is at least 0; of `x < n*m`, `6 - x mod m >= 0` says that
    `6 + (n - 1)*m - x >= 0`. So does a shift inside of sequences say where all of their tokens are.
    """
    return _linear([(c, _bound_of_remainder(atom, ranges, upper=c.is_nonnegative)) for c, atom in terms(guard)])


def _bound_of_remainder(atom: sympy.Expr, ranges: Ranges, upper: bool | None) -> sympy.Expr:
    """Return a linear expression that is nowhere smaller than a remainder by a number, or nowhere larger.

    The atom itself where it is none, where there is no such bound, and where `upper` is not known.
    """
    value, *by, divisor = atom.args if isinstance(atom, (ModularIndexing, Mod, PythonMod)) else (ZERO, ZERO)
    try:
        span = bounds(value, ranges) if upper is not None and divisor.is_positive and by in ([], [1]) else None
    except Unsupported:  # it is a remainder of what is not affine
        span = None
    if span is None:
        return atom
    multiples = expand(span[0] if upper else span[1] + 1) / divisor
    whole = sympy.floor(multiples) if upper else sympy.ceiling(multiples) - 1
    return expand(value - whole * divisor)
