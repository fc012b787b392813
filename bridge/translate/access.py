"""Access relations: linear index expressions of Inductor recovered as subscripts of a ranked memref.

Inductor addresses a buffer with one linear expression, `s0*i + j + 4096`, which is not affine when a
stride is symbolic.  All accesses of a group to one buffer are looked at together, a chain of strides
`S0 > S1 > ... > 1` is chosen from their coefficients, and every access becomes a list of affine
subscripts, each proven to lie inside its dimension.  In-bounds subscripts are what makes two different
subscript lists two different addresses, so nothing is assumed here: what is not proven is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import sympy

from ..reasons import Reason, Unsupported


@dataclass(frozen=True)
class Access:
    """One read or write of a buffer inside a nest.

    index: linear element offset, over iteration variables and size symbols.
    ranges: inclusive (low, high) of every variable of `index` where the access executes.
    """

    buffer: str
    index: sympy.Expr
    ranges: dict[sympy.Symbol, tuple[sympy.Expr, sympy.Expr]]
    is_write: bool


@dataclass
class View:
    """A buffer seen as a ranked memref: strides in elements (row-major chain) and the extents they imply."""

    buffer: str
    strides: list[sympy.Expr]
    sizes: list[sympy.Expr]
    subscripts: dict[sympy.Expr, list[sympy.Expr]] = field(default_factory=dict)


class Prover:
    """Size questions asked of Inductor's symbolic shape environment.

    known(condition) -> bool: true only if the sympy relation holds for every admitted size.
    hint(expr) -> int: a typical value, used for ordering only.
    """

    def __init__(self, known, hint):
        self.known = known
        self.hint = hint

    def less_equal(self, a: sympy.Expr, b: sympy.Expr) -> bool:
        difference = sympy.expand(b - a)
        if difference.is_Integer:
            return difference >= 0
        return bool(self.known(sympy.Ge(difference, 0)))


def bounds(expr: sympy.Expr, ranges: dict) -> tuple[sympy.Expr, sympy.Expr] | None:
    """Inclusive bounds of an affine expression over a box; None where a sign is unknown."""
    low = high = sympy.Integer(0)
    for coefficient, atom in terms(expr):
        term = _term_bounds(coefficient, atom, ranges)
        if term is None:
            return None
        low, high = low + term[0], high + term[1]
    return sympy.expand(low), sympy.expand(high)


def _term_bounds(coefficient, atom, ranges):
    if atom == 1:
        return coefficient, coefficient
    span = atom_bounds(atom, ranges)
    if span is None:
        return None
    if coefficient.is_nonnegative:
        return coefficient * span[0], coefficient * span[1]
    if coefficient.is_nonpositive:
        return coefficient * span[1], coefficient * span[0]
    return None


def atom_bounds(atom: sympy.Expr, ranges: dict) -> tuple[sympy.Expr, sympy.Expr] | None:
    """Inclusive bounds of an iteration variable, `x floordiv d` or `x floordiv d mod m`."""
    if atom in ranges:
        return ranges[atom]
    name = type(atom).__name__
    if name in ("ModularIndexing", "Mod", "PythonMod"):
        return sympy.Integer(0), atom.args[-1] - 1
    if name == "FloorDiv" and atom.args[1].is_Integer:
        inner = bounds(atom.args[0], ranges)
        return None if inner is None else tuple(sympy.floor(b / atom.args[1]) for b in inner)
    return None


def terms(expr: sympy.Expr) -> list[tuple[sympy.Expr, sympy.Expr]]:
    """Splits into (coefficient, atom): atoms are variables or floordiv / mod of them, coefficients are sizes."""
    return [_split_term(term) for term in sympy.Add.make_args(sympy.expand(expr))]


def _split_term(term):
    factors = sympy.Mul.make_args(term)
    atoms = [f for f in factors if is_iteration_atom(f)]
    if len(atoms) > 1:
        raise Unsupported(Reason.non_affine_index, f"product of iteration variables in {term}")
    rest = sympy.Mul(*[f for f in factors if f not in atoms])
    return rest, atoms[0] if atoms else sympy.Integer(1)


def is_iteration_atom(expr: sympy.Expr) -> bool:
    """Iteration variables carry the prefix `i` + digits that this package gives them; sizes never do."""
    return any(is_iteration_variable(s) for s in expr.free_symbols)


def is_iteration_variable(symbol: sympy.Symbol) -> bool:
    return symbol.name.startswith("bridge_iv")


def delinearise(buffer: str, accesses: list[Access], numel: sympy.Expr, prover: Prover) -> View:
    """The finest stride chain under which every access is proven in bounds.

    Raises Unsupported(subscript_out_of_bounds) if even one dimension over the whole storage is not proven.
    """
    chain = _stride_chain(accesses, prover)
    while True:
        view, culprit = _try_chain(buffer, chain, accesses, numel, prover)
        if view is not None:
            return view
        if culprit == 0:
            raise Unsupported(Reason.subscript_out_of_bounds, f"{buffer}: access not proven inside {numel} elements")
        chain = chain[: culprit - 1] + chain[culprit:]


def _stride_chain(accesses: list[Access], prover: Prover) -> list[sympy.Expr]:
    """Descending strides, each a multiple of the next, ending in 1."""
    found = {abs(c) for a in accesses for c, atom in terms(a.index) if atom != 1 and c != 0}
    chain: list[sympy.Expr] = [sympy.Integer(1)]
    for stride in sorted(found, key=prover.hint):
        if stride != chain[-1] and divides(chain[-1], stride):
            chain.append(stride)
    return chain[::-1]


def divides(divisor: sympy.Expr, value: sympy.Expr) -> bool:
    """True if `value / divisor` is a polynomial with integer coefficients."""
    quotient = sympy.expand(sympy.cancel(value / divisor))
    numerator, denominator = quotient.as_numer_denom()
    return denominator == 1 and all(c.is_Integer for c in numerator.as_coefficients_dict().values())


def _try_chain(buffer, chain, accesses, numel, prover):
    """(view, -1) if proven, (None, k) if dimension k holds a subscript that is not proven in bounds."""
    sizes = [_outer_size(numel, chain[0])]
    sizes += [sympy.cancel(a / b) for a, b in zip(chain, chain[1:], strict=False)]
    view = View(buffer, chain, sizes)
    for access in accesses:
        subscripts = _subscripts(access, chain, prover)
        if isinstance(subscripts, int):
            return None, subscripts
        culprit = _out_of_bounds(subscripts, access, sizes, prover)
        if culprit is not None:
            return None, culprit
        view.subscripts[access.index] = subscripts
    return view, -1


def _outer_size(numel: sympy.Expr, stride: sympy.Expr) -> sympy.Expr:
    quotient = sympy.expand(sympy.cancel(numel / stride))
    if quotient.is_Integer or quotient.is_Rational:
        return sympy.ceiling(quotient)
    constant = quotient.as_coeff_Add()[0]
    return quotient - constant + sympy.ceiling(constant)


def _subscripts(access: Access, chain: list[sympy.Expr], prover: Prover):
    """Distributes the terms over the chain; the constant goes where the lower subscripts stay non-negative."""
    parts = [sympy.Integer(0) for _ in chain]
    constant = sympy.Integer(0)
    for coefficient, atom in terms(access.index):
        if atom == 1:
            constant += coefficient
            continue
        position = _position(coefficient, chain)
        parts[position] += sympy.cancel(coefficient / chain[position]) * atom
    return _place_constant(parts, sympy.expand(constant), chain, access.ranges, prover)


def _position(coefficient: sympy.Expr, chain: list[sympy.Expr]) -> int:
    for position, stride in enumerate(chain):
        if divides(stride, coefficient):
            return position
    return len(chain) - 1


def _place_constant(parts, constant, chain, ranges, prover):
    """Mixed-radix digits of the constant, chosen so that every lower part starts at or above zero."""
    for position, stride in enumerate(chain[:-1]):
        lower = sum((p * s for p, s in zip(parts[position + 1 :], chain[position + 1 :], strict=True)), sympy.Integer(0))
        span = bounds(lower, ranges)
        if span is None:
            return position + 1
        digit = _floor_quotient(sympy.expand(constant + span[0]), stride)
        parts[position] += digit
        constant = sympy.expand(constant - digit * stride)
    parts[-1] += constant
    return [sympy.expand(p) for p in parts]


def _floor_quotient(value: sympy.Expr, stride: sympy.Expr) -> sympy.Expr:
    """floor(value / stride) where it is a polynomial in the sizes; 0 if it cannot be told."""
    if value.is_Integer and stride.is_Integer:
        return sympy.Integer(value // stride)
    quotient = sympy.Integer(0)
    for term in sympy.Add.make_args(value):
        if term != 0 and divides(stride, term):
            quotient += sympy.cancel(term / stride)
    return quotient


def _out_of_bounds(subscripts, access: Access, sizes, prover: Prover) -> int | None:
    for position in reversed(range(len(sizes))):
        span = bounds(subscripts[position], access.ranges)
        inside = span is not None and prover.less_equal(sympy.Integer(0), span[0])
        if not inside or not prover.less_equal(span[1], sizes[position] - 1):
            return position
    return None
