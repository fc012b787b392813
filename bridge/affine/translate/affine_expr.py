"""Translate sympy's index expressions to MLIR's affine expressions."""

from __future__ import annotations

import sympy
from torch.utils._sympy.functions import FloorDiv, Mod, PythonMod

from ...reasons import Reason, Unsupported
from ..mlir_runtime import ir
from .access import expand, is_iteration_atom
from .divisions import DIVISIONS


def check_divisors(expr: sympy.Expr) -> None:
    """Raise Unsupported(non_affine_index) if something that varies with the iteration is divided by no number."""
    for division in filter(is_iteration_atom, expr.atoms(*DIVISIONS)):
        _check_divisor(division)


def _check_divisor(division: sympy.Expr) -> None:
    if not all(d.is_Integer and d > 0 for d in division.args[1:]):
        raise Unsupported(Reason.non_affine_index, f"{division} divides by what is no positive number")


class SymbolTable:
    """Append size expressions as `index` arguments to the entry block of the function as they are met.

    A product of sizes is no affine expression, so it is a symbol of its own; the argument's `bridge.size`
    attribute keeps what it stands for.
    """

    def __init__(self, entry: ir.Block):
        """Start without arguments for sizes."""
        self.entry = entry
        self.values: dict[sympy.Expr, ir.Value] = {}

    def value(self, expr: sympy.Expr) -> ir.Value:
        """Return the argument that stands for a size expression."""
        if expr not in self.values:
            self.values[expr] = self.entry.add_argument(ir.IndexType.get(), ir.Location.unknown())
        return self.values[expr]


class AffineBuilder:
    """Convert expressions against fixed dimensions; symbols are numbered as they are met."""

    def __init__(self, dims: list[sympy.Symbol]):
        """Give each dimension its number."""
        self.dims = {v: i for i, v in enumerate(dims)}
        self.symbols: list[sympy.Expr] = []

    def convert(self, expr: sympy.Expr) -> ir.AffineExpr:
        """Return an expression in affine form; Unsupported(non_affine_index) if it has none."""
        return self._convert(expand(expr))

    def _convert(self, expr: sympy.Expr) -> ir.AffineExpr:
        """Convert an expanded expression."""
        if expr.is_Integer:
            return ir.AffineExpr.get_constant(int(expr))
        if expr in self.dims:
            return ir.AffineExpr.get_dim(self.dims[expr])
        if expr.is_Symbol:
            return self._symbol(expr)
        if expr.is_Add:
            return self._sum([self._convert(a) for a in expr.args])
        if expr.is_Mul:
            return self._product(expr)
        return self._division(expr)

    def _sum(self, parts: list[ir.AffineExpr]) -> ir.AffineExpr:
        """Return the sum of converted terms."""
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def _product(self, expr: sympy.Expr) -> ir.AffineExpr:
        """Convert a product of a number and a variable or size."""
        factor, rest = expr.as_coeff_Mul()
        if not factor.is_Integer:
            raise Unsupported(Reason.non_affine_index, f"rational coefficient in {expr}")
        if rest.is_Mul and is_iteration_atom(rest):
            raise Unsupported(Reason.non_affine_index, f"symbolic stride in {expr}")
        inner = self._symbol(rest) if rest.is_Mul else self._convert(rest)
        return inner * int(factor)

    def _division(self, expr: sympy.Expr) -> ir.AffineExpr:
        """Convert a quotient or a remainder."""
        if not is_iteration_atom(expr):
            return self._symbol(expr)
        if not isinstance(expr, DIVISIONS):
            raise Unsupported(Reason.non_affine_index, f"{expr} is not affine in the iteration variables")
        _check_divisor(expr)
        args = expr.args
        if isinstance(expr, FloorDiv):
            return ir.AffineExpr.get_floor_div(self._convert(args[0]), int(args[1]))
        if isinstance(expr, (Mod, PythonMod)):
            return ir.AffineExpr.get_mod(self._convert(args[0]), int(args[1]))
        quotient = ir.AffineExpr.get_floor_div(self._convert(args[0]), int(args[1]))
        return ir.AffineExpr.get_mod(quotient, int(args[2]))

    def _symbol(self, expr: sympy.Expr) -> ir.AffineExpr:
        """Return the symbol that stands for a size expression."""
        if not expr.is_integer:
            raise Unsupported(Reason.non_affine_index, f"{expr} is no integer")
        if expr not in self.symbols:
            self.symbols.append(expr)
        return ir.AffineExpr.get_symbol(self.symbols.index(expr))

    def map(self, expressions: list[sympy.Expr]) -> ir.AffineMap:
        """Return a map over all dimensions; `symbols` then lists its symbol operands in order."""
        converted = [self.convert(e) for e in expressions]
        return ir.AffineMap.get(len(self.dims), len(self.symbols), converted)
