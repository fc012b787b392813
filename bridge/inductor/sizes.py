"""Symbolic sizes: what is known of them, and typical values."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from math import prod
from typing import TypeAlias

import sympy
from torch.utils._sympy.functions import FloorDiv, Identity, Max, ModularIndexing
from torch.utils._sympy.symbol import SymT, symbol_is_type

from .protocols import LoopBody

#: How many iterations loops have: a number, or an expression of symbols.
Extent: TypeAlias = "int | sympy.Expr"


def statically_known(condition: sympy.Basic | bool) -> bool:
    """Return True only if a size relation holds for every size that the graph's guards admit."""
    from torch._inductor.virtualized import V

    return bool(V.graph.sizevars.statically_known_true(condition))


def spelled_out(size: sympy.Expr) -> sympy.Expr:
    """Return what a symbol stands for that the wrapper computes once for several kernels; any other size as it is."""
    from torch._inductor.virtualized import V

    return V.graph.sizevars.inv_precomputed_replacements.get(size, size)


def is_there(size: Extent) -> bool:
    """Return True if a size is a number, or known to be at least one."""
    return isinstance(size, int) or statically_known(size >= 1)


def as_extent(size: Extent) -> Extent:
    """Return a size as a number of Python's where it is one, else as the sum that it is for the graph's guards."""
    if isinstance(size, (int, sympy.Integer)):
        return int(size)
    from torch._inductor.virtualized import V

    simplified = sympy.expand(V.graph.sizevars.simplify_with_ranges(size, {}))
    return int(simplified) if simplified.is_Integer else simplified


def are_equal(one: Extent, other: Extent) -> bool:
    """Return True if two sizes are the same for every value of their symbols that the graph's guards admit."""
    return bool(one == other) or as_extent(one - other) == 0


def of_each(extent: Extent, groups: Extent) -> Extent:
    """Return how many each of some groups has of what they have together; all have as many."""
    if isinstance(extent, int) and isinstance(groups, int):
        return extent // groups
    return as_extent(FloorDiv(extent, groups))


def known_divisor(extent: Extent) -> int:
    """Return the largest number that is known to divide a size, whatever its symbols are."""
    return extent if isinstance(extent, int) else int(sympy.sympify(as_extent(extent)).primitive()[0])


def divided_up(rows: Extent, block: int, group: Extent | None = None) -> Extent:
    """Return how many blocks of so many rows there are, of which the last may have fewer.

    group: rows that follow each other and have blocks of their own, the last of each with fewer rows; None for all.
    """
    if group is not None:
        return as_extent(of_each(rows, group) * divided_up(group, block))
    return -(-rows // block) if isinstance(rows, int) else FloorDiv(rows + block - 1, block)


def size_facts() -> tuple[sympy.Basic, ...]:
    """Return the relations of sizes that hold whenever the graph runs: its guards, and what its program asserts."""
    from torch._inductor.virtualized import V

    return V.graph.sizevars.shape_env.get_axioms()


def equal_sizes(sizes: Iterable[sympy.Symbol]) -> dict[sympy.Symbol, sympy.Expr]:
    """Return what Inductor has in the place of those sizes that guards say are others: `s == u` of two inputs."""
    from torch._inductor.virtualized import V

    present = {size: V.graph.sizevars.simplify(size) for size in sizes}
    return {size: other for size, other in present.items() if other != size}


def size_expressions(body: LoopBody) -> list[sympy.Expr]:
    """Return the divisions in a LoopBody's index expressions that are of sizes alone."""
    expressions = getattr(body, "indexing_exprs", {}).values()
    divisions = set().union(*[e.atoms(sympy.Function) for e in map(sympy.sympify, expressions)])
    return [d for d in divisions if not d.free_symbols & body.var_ranges.keys()]


def sizes_in_maxima(body: LoopBody) -> list[sympy.Expr]:
    """Return the sizes of which a LoopBody's indices have `Max(1, s)`: strides of what may be empty."""
    expressions = map(sympy.sympify, getattr(body, "indexing_exprs", {}).values())
    maxima = set().union(*[e.atoms(Max, sympy.Max) for e in expressions])
    pairs = [m.args for m in maxima if len(m.args) == 2 and m.args[0] == 1]
    return sorted({size for _, size in pairs if not size.free_symbols & body.var_ranges.keys()}, key=str)


@functools.lru_cache(maxsize=1 << 14)
def coefficient(index: sympy.Expr, variable: sympy.Symbol) -> sympy.Expr:
    """Return the factor of a loop's variable in an index.

    Layers of a model have the same indices; sympy takes 50 us for one.
    """
    return index.coeff(variable)


@functools.lru_cache(maxsize=1 << 14)
def linear_step(index: sympy.Expr, variable: sympy.Symbol) -> int | None:
    """Return by how much an index grows with each iteration of a loop; None where it says that in no simple term.

    To substitute iterations for the variable, as what asks has to do then, takes twenty times as long.
    """
    factor = coefficient(index, variable)
    linear = factor.is_Integer and variable not in (index - factor * variable).free_symbols
    return int(factor) if linear else None


def step_along(index: sympy.Expr, variable: sympy.Symbol, variables: AbstractSet[sympy.Symbol]) -> int:
    """Return by how many elements, either way, an index moves from a loop's first iteration to its second.

    variables: of all loops, in whose first iteration the others are. A typical value, for cost only.
    """
    known = linear_step(index, variable)
    if known is not None:
        return abs(known)
    first = dict.fromkeys(index.free_symbols & variables, 0)
    step = index.subs({**first, variable: 1}) - index.subs(first)
    return abs(size_hint(step))


def contiguous_run(loops: Iterable[tuple[int, int]]) -> int:
    """Return how many iterations follow each other in memory.

    loops: by how many elements each moves, and its iterations, the innermost first.
    """
    run = 1
    for step, size in loops:
        if step != run and size != 1:
            break
        run *= size
    return run


def number_of_digits(digits: Sequence[sympy.Expr], sizes: Sequence[sympy.Expr | int]) -> sympy.Expr:
    """Return the number with these digits, of which each has so many values."""
    return sum(prod(sizes[place + 1 : len(digits)]) * digit for place, digit in enumerate(digits))


def has_steps(body: LoopBody) -> bool:
    """Return True if a LoopBody steps over elements along one of its loops, in what it reads or writes."""
    expressions = getattr(body, "indexing_exprs", {}).values()
    factors = (coefficient(sympy.sympify(expr), v) for expr in expressions for v in body.var_ranges)
    return any(factor.is_Integer and abs(factor) > 1 for factor in factors)


#: Writes an index of a LoopBody's in other terms.
Rewrite = Callable[[sympy.Expr], sympy.Expr]


def _as_it_is(index: sympy.Expr) -> sympy.Expr:
    """Return an index."""
    return index


def loop_cuts(body: LoopBody, rewrite: Rewrite = _as_it_is) -> list[set[Extent]]:
    """Return for each loop of a LoopBody the numbers of its innermost iterations by which indices divide it.

    One may be symbolic: of 32 heads of `s` tokens, repeated, an index is divided by `s` and by `4*s`.
    """
    expressions = [rewrite(sympy.sympify(e)) for e in getattr(body, "indexing_exprs", {}).values()]
    divisions = set().union(*[e.atoms(FloorDiv, ModularIndexing) for e in expressions])
    return [{cut for d in divisions if d.args[0] == variable for cut in _cuts(d)} for variable in body.iter_vars]


def loop_remainders(body: LoopBody, rewrite: Rewrite = _as_it_is) -> list[set[int]]:
    """Return for each loop of a LoopBody the numbers by which remainders are values that it computes with.

    A remainder in the address of an access alone is none of these. That of a variable less a number is: it is asked
    whether an element is one of `[..., 1::2]`.
    """
    entries = itertools.chain.from_iterable(getattr(body, "memory_usage", {}).values())
    accessed = {entry.index_name for entry in entries if entry.buffer_name}
    named = getattr(body, "indexing_exprs", {}).items()
    values = [rewrite(sympy.sympify(e)) for name, e in named if name not in accessed]
    remainders = [e for e in values if isinstance(e, ModularIndexing) and e.args[1] == 1 and e.args[2].is_Integer]
    return [{int(e.args[2]) for e in remainders if (e.args[0] - v).is_Integer} for v in body.iter_vars]


def loop_strides(body: LoopBody, rewrite: Rewrite = _as_it_is) -> list[tuple[str, list[sympy.Expr]]]:
    """Return (buffer, elements from one iteration to the next, for each loop of a LoopBody) for each access.

    Those of a reduction come last.
    """
    named = loop_indices(body, rewrite)[1]
    return [(buffer, [coefficient(index, variable) for variable in body.var_ranges]) for buffer, index in named]


def loop_indices(
    body: LoopBody, rewrite: Rewrite = _as_it_is
) -> tuple[list[sympy.Symbol], list[tuple[str, sympy.Expr]]]:
    """Return (the variables of a LoopBody's loops, those of a reduction last, (buffer, index) of each access)."""
    expressions = {name: sympy.expand(rewrite(e)) for name, e in getattr(body, "indexing_exprs", {}).items()}
    entries = (entry for entries in getattr(body, "memory_usage", {}).values() for entry in entries)
    named = [(e.buffer_name, expressions[e.index_name]) for e in entries if e.buffer_name and e.index_name]
    return list(body.var_ranges), named


def buffers_stored(body: LoopBody) -> set[str]:
    """Return the buffers that a LoopBody stores to."""
    usage = getattr(body, "memory_usage", {}).items()
    return {entry.buffer_name for kind, entries in usage if kind.name.startswith("STORE") for entry in entries}


def _cuts(division: sympy.Expr) -> list[Extent]:
    """Return where a division cuts a loop: `v // 49` at 49, `v // 7 % 7` at 7 and at 49."""
    cuts = itertools.accumulate(division.args[1:], operator.mul)
    return [int(cut) if cut.is_Integer else cut for cut in cuts if not cut.is_Integer or cut > 1]


#: What a size is taken for that has no typical value.
UNKNOWN_SIZE = 4096


def size_hint(expr: sympy.Expr) -> int:
    """Return a typical value of a size expression, for ordering and cost only, never for legality."""
    plain = expr if isinstance(expr, int) else _unwrapped(expr)
    if isinstance(plain, (int, sympy.Integer)):
        return int(plain)
    from torch._inductor.virtualized import V

    sizevars = V.graph.sizevars
    hint = getattr(sizevars, "optimization_hint", None) or sizevars.size_hint
    try:
        return int(hint(plain, fallback=UNKNOWN_SIZE))
    except ZeroDivisionError:
        # Of sizes that are assumed to be multiples of more than the typical ones: a divisor is 0 for these.
        return UNKNOWN_SIZE


def _unwrapped(expr: sympy.Expr) -> sympy.Expr:
    """Return an expression without what torch 2.11 finds no value for: indices that are loaded, and `Identity`.

    Inductor writes the latter around indices of `cat`. Later releases take what is loaded for the same number.
    """
    unknown = sympy.Integer(UNKNOWN_SIZE)
    loaded = {s: unknown for s in expr.free_symbols if symbol_is_type(s, (SymT.TMP, SymT.INDIRECT))}
    known = expr.xreplace(loaded) if loaded else expr
    # An index of a `cat` within another one is wrapped twice; `replace` takes off only one of the two.
    while wrapped := known.atoms(Identity):
        known = known.xreplace({one: one.args[0] for one in wrapped})
    return known
