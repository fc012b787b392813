"""Tell what elements side by side access far apart, each with an access of its own; for cost only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import Any, NamedTuple

import sympy

from .layouts import buffer_dtype
from .loops import made_once
from .protocols import LoopBody
from .sizes import Extent, size_hint, step_along
from .tiles import COLUMN, ROW, loop_digits

#: Elements whose addresses tell how far apart they are: as many as a thread has side by side at most.
LOOKED_AT = 8

#: Steps of a row of elements that one instruction accesses: the same element for all, neighbours, or every other one,
#: for which `lowering/triton/strided_access.py` has an access of twice the width.
TOGETHER = {0, 1, 2}

#: Instructions that a GPU executes for each byte between the elements of two threads that one access asks the nearest
#: cache for. The cache answers for 128 bytes at a time, while four schedulers of a multiprocessor begin four
#: instructions of 32 lanes, a fifth of which wait for something else.
INSTRUCTIONS_OF_A_BYTE = 0.8

#: Bytes that the cache answers for at a time: of elements that are further apart, each has an answer of its own.
LINE = 128


class Place(NamedTuple):
    """Say where a tile of rows accesses a buffer.

    apart: bytes between columns side by side, 0 where several have one access; rows_together: rows that follow each
    other are side by side in memory.
    """

    buffer: str
    address: sympy.Expr
    apart: float
    rows_together: bool


def bytes_apart(
    index: sympy.Expr, variable: sympy.Symbol, variables: AbstractSet[sympy.Symbol], itemsize: int
) -> float:
    """Return the bytes between elements side by side along a loop, on average; 0 where several have one access.

    So they have where they are neighbours along another loop, too: blocks have elements of several of its iterations.
    index: in elements; variables: of all loops, in whose first iteration the others are.
    """
    if any(step_along(index, other, variables) == 1 for other in index.free_symbols & variables - {variable}):
        return 0
    return _bytes_along(index, variable, variables, itemsize)


def _bytes_along(
    index: sympy.Expr, variable: sympy.Symbol, variables: AbstractSet[sympy.Symbol], itemsize: int
) -> float:
    along = sympy.Add(*(term for term in sympy.Add.make_args(index) if variable in term.free_symbols))
    if along == variable:
        return 0
    first = along.xreplace(dict.fromkeys(along.free_symbols & variables - {variable}, sympy.Integer(0)))
    at = [size_hint(first.xreplace({variable: sympy.Integer(n)})) for n in range(LOOKED_AT + 1)]
    steps = {abs(after - before) for before, after in pairwise(at)}
    if len(steps) == 1 and steps <= TOGETHER:
        return 0
    return abs(at[-1] - at[0]) / LOOKED_AT * itemsize


def skips_elements(body: LoopBody) -> bool:
    """Return True if elements side by side along the innermost loop are loaded or stored from places apart in memory.

    Each then has an access for itself, as nothing here looks for every other element.
    """
    variables = [*body.iter_vars, *body.reduce_vars]
    indices = {body.indexing_exprs[entry.index_name] for entry in _accesses(body)}
    return any(step_along(index, variables[-1], set(variables)) > 1 for index in indices) if variables else False


def instructions_of_access(apart: float, beside: float) -> float:
    """Return the instructions that a GPU could execute for an element while the nearest cache answers.

    apart: what `bytes_apart` returns; beside: elements that a thread has side by side.
    """
    return INSTRUCTIONS_OF_A_BYTE * min(apart * beside, LINE)


def instructions_along_rows(
    bodies: Iterable[LoopBody], rows: Extent, columns: int, beside: float, step: int = 1
) -> float:
    """Return the instructions that a GPU could execute for an element of a tile while it waits for scattered accesses.

    What several loops over the tile load at one address counts once. beside: columns that a thread has side by side;
    step: rows that a program has at a time, which have one access where they are neighbours.
    """
    found = {place for body in bodies for place in places_in_tile(body, rows, columns)}
    return sum(instructions_of_access(place.apart, beside) / (step if place.rows_together else 1) for place in found)


def rows_are_together(body: LoopBody, rows: Extent, columns: int) -> bool:
    """Return True if loops over a tile load rows that are side by side in memory, where its columns are far apart."""
    return any(place.apart and place.rows_together for place in places_in_tile(body, rows, columns))


def places_in_tile(body: LoopBody, rows: Extent, columns: int) -> set[Place]:
    """Return where loops over a tile access buffers; nothing where that is not known."""
    key = "places in tile", rows, columns
    return made_once(body, key, lambda: set(_found_in_tile(body, rows, columns)))


def _found_in_tile(body: LoopBody, rows: Extent, columns: int) -> Iterator[Place]:
    digits, variables = loop_digits(body, rows, columns), {ROW, COLUMN}
    for entry in _accesses(body) if digits else ():
        address = sympy.expand(sympy.sympify(body.indexing_exprs[entry.index_name]).subs(digits, simultaneous=True))
        apart = _bytes_along(address, COLUMN, variables, buffer_dtype(entry.buffer_name).itemsize)
        yield Place(entry.buffer_name, address, apart, step_along(address, ROW, variables) == 1)


def _accesses(body: LoopBody) -> list[Any]:
    """Return the entries of what a body loads, and then of what it stores."""
    from torch._inductor.loop_body import MemoryUsageType

    kinds = MemoryUsageType.LOAD, MemoryUsageType.STORE
    return [entry for kind in kinds for entry in body.memory_usage.get(kind, ())]
