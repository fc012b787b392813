"""Symbolic sizes: what is known of them, and typical values."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import sympy
from torch.utils._sympy.functions import FloorDiv, ModularIndexing


def statically_known(condition: Any) -> bool:
    """True only if a size relation holds for every size that the graph's guards admit."""
    from torch._inductor.virtualized import V

    return bool(V.graph.sizevars.statically_known_true(condition))


def size_facts() -> tuple[Any, ...]:
    """Relations of sizes that hold whenever the graph runs: its guards, and what its program asserts."""
    from torch._inductor.virtualized import V

    return V.graph.sizevars.shape_env.get_axioms()


def size_expressions(body: Any) -> list[sympy.Expr]:
    """The divisions in a LoopBody's index expressions that are of sizes alone."""
    expressions = getattr(body, "indexing_exprs", {}).values()
    divisions = set().union(*[e.atoms(sympy.Function) for e in map(sympy.sympify, expressions)])
    return [d for d in divisions if not d.free_symbols & body.var_ranges.keys()]


def has_steps(body: Any) -> bool:
    """Whether a LoopBody reads or writes every so-manieth element along one of its loops."""
    expressions = getattr(body, "indexing_exprs", {}).values()
    return any(expr.coeff(v).is_Integer and abs(expr.coeff(v)) > 1 for expr in expressions for v in body.var_ranges)


def loop_cuts(body: Any) -> list[set[int]]:
    """For each iteration loop of a LoopBody the numbers of its innermost iterations by which indices divide it."""
    expressions = getattr(body, "indexing_exprs", {}).values()
    divisions = set().union(*[e.atoms(FloorDiv, ModularIndexing) for e in map(sympy.sympify, expressions)])
    return [{cut for d in divisions if d.args[0] == variable for cut in _cuts(d)} for variable in body.iter_vars]


def _cuts(division: sympy.Expr) -> list[int]:
    """By `v // 49` a loop over v is cut at 49, by `v // 7 % 7` at 7 and at 49."""
    return [int(cut) for cut in itertools.accumulate(division.args[1:], operator.mul) if cut.is_Integer and cut > 1]


def size_hint(expr: sympy.Expr) -> int:
    """A typical value of a size expression, for ordering and cost only, never for legality."""
    from torch._inductor.virtualized import V

    sizevars = V.graph.sizevars
    hint = getattr(sizevars, "optimization_hint", None) or sizevars.size_hint
    return int(hint(expr, fallback=4096))
