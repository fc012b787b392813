"""sympy index expressions as MLIR affine expressions."""

from __future__ import annotations

import sympy

from ..mlir_runtime import ir
from ..reasons import Reason, Unsupported
from .access import is_iteration_atom, is_iteration_variable


class SymbolTable:
    """Size expressions as `index` arguments of the function: one argument for each symbol.

    A product of sizes is no affine expression, so it becomes a symbol of its own; the argument's
    `bridge.size` attribute keeps what it stands for.
    """

    def __init__(self):
        self.values: dict[sympy.Expr, ir.Value] = {}

    def bind(self, expressions: list[sympy.Expr], arguments: list) -> None:
        self.values = dict(zip(expressions, arguments, strict=True))


def size_symbols(expr: sympy.Expr) -> list[sympy.Expr]:
    """The symbols that an expression over iteration variables needs, products of sizes as one."""
    found: dict[sympy.Expr, None] = {}
    _collect_symbols(sympy.expand(expr), found)
    return list(found)


def _collect_symbols(expr: sympy.Expr, found: dict) -> None:
    if expr.is_Integer or (expr.is_Symbol and is_iteration_variable(expr)):
        return
    if expr.is_Symbol:
        found[expr] = None
    elif expr.is_Mul and not is_iteration_atom(expr):
        found[sympy.Mul(*[f for f in expr.args if not f.is_Integer])] = None
    else:
        for arg in expr.args:
            _collect_symbols(arg, found)


class AffineBuilder:
    """Converts expressions against fixed dimensions; symbols are numbered as they are met."""

    def __init__(self, dims: list[sympy.Symbol]):
        self.dims = {v: i for i, v in enumerate(dims)}
        self.symbols: list[sympy.Expr] = []

    def convert(self, expr: sympy.Expr) -> ir.AffineExpr:
        return self._convert(sympy.expand(expr))

    def _convert(self, expr: sympy.Expr) -> ir.AffineExpr:
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
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def _product(self, expr: sympy.Expr) -> ir.AffineExpr:
        factor, rest = expr.as_coeff_Mul()
        if not factor.is_Integer:
            raise Unsupported(Reason.non_affine_index, f"rational coefficient in {expr}")
        if rest.is_Mul and is_iteration_atom(rest):
            raise Unsupported(Reason.non_affine_index, f"symbolic stride in {expr}")
        inner = self._symbol(rest) if rest.is_Mul else self._convert(rest)
        return inner * int(factor)

    def _division(self, expr: sympy.Expr) -> ir.AffineExpr:
        name, args = type(expr).__name__, expr.args
        if name == "FloorDiv" and args[1].is_Integer:
            return ir.AffineExpr.get_floor_div(self._convert(args[0]), int(args[1]))
        if name in ("Mod", "PythonMod") and args[1].is_Integer:
            return ir.AffineExpr.get_mod(self._convert(args[0]), int(args[1]))
        if name == "ModularIndexing" and args[1].is_Integer and args[2].is_Integer:
            quotient = ir.AffineExpr.get_floor_div(self._convert(args[0]), int(args[1]))
            return ir.AffineExpr.get_mod(quotient, int(args[2]))
        if not is_iteration_atom(expr):
            return self._symbol(expr)
        raise Unsupported(Reason.non_affine_index, f"{expr} is not affine in the iteration variables")

    def _symbol(self, expr: sympy.Expr) -> ir.AffineExpr:
        if expr not in self.symbols:
            self.symbols.append(expr)
        return ir.AffineExpr.get_symbol(self.symbols.index(expr))

    def map(self, expressions: list[sympy.Expr]) -> ir.AffineMap:
        """A map over all dimensions; `symbols` then lists its symbol operands in order."""
        converted = [self.convert(e) for e in expressions]
        return ir.AffineMap.get(len(self.dims), len(self.symbols), converted)
