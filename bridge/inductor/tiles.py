"""Find where a loop node accesses a buffer, by the row and the column of a tile of rows that it goes over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod

import sympy
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

from .loops import made_once, remake_loop_body
from .protocols import LoopBody, LoopNode
from .schedule import node_body
from .sizes import Extent, are_equal, as_extent

ROW, COLUMN = (sympy.Symbol(name, integer=True, nonnegative=True) for name in ("row", "column"))


def covers_tile(node: LoopNode, rows: Extent, columns: int) -> bool:
    """Return True if a node goes over each element of a tile once: all of its loops, one within the other."""
    elements, reduced = _elements(node_body(node))
    return are_equal(elements, rows * columns) and reduced in (1, columns)


def covers_rows(node: LoopNode, rows: Extent) -> bool:
    """Return True if a node goes over the rows of a tile alone."""
    elements, reduced = _elements(node_body(node))
    return are_equal(elements, rows) and reduced == 1


def splits_into_tile(node: LoopNode, rows: Extent, columns: int) -> bool:
    """Return what `splits_into` does for a tile; once, as nothing that is learned of symbols makes it wrong.

    Loops over (2, 4, 65, 4) are not of 130 rows of 16: those of the first two are 8, and 130 are no multiple of 8.
    """
    body, groups = node_body(node), (sympy.sympify(rows), sympy.Integer(columns))
    return made_once(body, ("splits_into_tile", rows, columns), partial(splits_into, body, groups))


def splits_into(body: LoopBody, groups: Sequence[sympy.Expr]) -> bool:
    """Return True if Inductor can go over loops, as it is going to merge them, in the two of a kernel of Triton's.

    It splits them into the kernel's, which it can always prove right for numbers, but not for symbols.
    """
    return splits_unmerged_into(body.merge_loops(), groups)


def splits_unmerged_into(body: LoopBody, groups: Sequence[sympy.Expr]) -> bool:
    """Return True if Inductor can go over loops, as it has them while it fuses, in the two of a kernel of Triton's."""
    from torch._inductor.codegen.simd import SIMDKernel

    return SIMDKernel.is_compatible(groups, body.sizes, groups[-1])


def _elements(body: LoopBody) -> tuple[sympy.Expr, sympy.Expr]:
    """Return how many elements loops go over, and how many of these they reduce to one."""
    return made_once(body, "elements", lambda: (prod(_extents(body)), prod(body.sizes[1])))


def reduced_elements(node: LoopNode) -> int | None:
    """Return how many elements a node reduces to one; None for one that reduces nothing, or as many as a symbol."""
    _, reduced = _elements(node_body(node))
    return int(reduced) if node_body(node).sizes[1] and sympy.sympify(reduced).is_Integer else None


def reduction_types(node: LoopNode) -> set[str]:
    """Return the types of the reductions in a node's loop body."""
    body = node_body(node)
    blocks = [body.root_block, *body.subblocks.values()]
    return {str(op.args[3]) for block in blocks for op in block.graph.nodes if op.target == "reduction"}


def places(body: LoopBody, name: str, rows: Extent, columns: int, outer: int | None = None) -> set[sympy.Expr]:
    """Return the addresses by row and column at which loops over a tile access a buffer; none where one is not known.

    Those alone where columns that follow each other are neighbours in memory. outer: how many loops stand around those
    that reduce, default all others.
    """
    found = _addresses(body, name, ("LOAD", "STORE", "STORE_REDUCTION"), rows, columns, outer) or set()
    return {place for place in found if sympy.expand(place - place.subs(COLUMN, 0)) == COLUMN}


def agree(writer: LoopNode, reader: LoopBody, name: str, rows: Extent, columns: int) -> bool:
    """Return True if, for each row and column, `reader` loads what `writer` has stored there, or for the whole row.

    Both go over the tile, or its rows. False where that is not known.
    """
    stored = _addresses(node_body(writer), name, ("STORE", "STORE_REDUCTION"), rows, columns)
    return _is_one_place(stored, _addresses(reader, name, ("LOAD",), rows, columns))


def agree_on_elements(writer: LoopNode, reader: LoopNode, name: str) -> bool:
    """Return True if `reader` loads from a buffer, for each element that it goes over, what `writer` has stored for it.

    Both go over as many elements, in the order of their loops, and may reduce several to each. False where that is not
    known.
    """
    bodies = node_body(writer), node_body(reader)
    elements, other = (as_extent(prod(body.sizes[0])) for body in bodies)
    stores, loads = ("STORE", "STORE_REDUCTION"), ("LOAD",)
    if not are_equal(elements, other):
        return False
    return _is_one_place(*(_addresses_by_element(*each, name) for each in zip(bodies, (stores, loads), strict=True)))


def _is_one_place(stored: set[sympy.Expr] | None, loaded: set[sympy.Expr] | None) -> bool:
    """Return True if what is loaded is at the one address at which it is stored."""
    return stored is not None and len(stored) == 1 and loaded == stored


def _addresses_by_element(body: LoopBody, kinds: tuple[str, ...], name: str) -> set[sympy.Expr] | None:
    """Return the addresses by element at which loops access a buffer; None where they are not known."""
    elements, reduced = (as_extent(prod(sizes)) for sizes in body.sizes)
    found = _addresses(body, name, kinds, elements, reduced)
    return None if found is None or any(COLUMN in place.free_symbols for place in found) else found


def _extents(body: LoopBody) -> list[sympy.Expr]:
    iterated, reduced = body.sizes
    return [*iterated, *reduced]


def _addresses(
    body: LoopBody, name: str, kinds: tuple[str, ...], rows: Extent, columns: Extent, outer: int | None = None
) -> set[sympy.Expr] | None:
    """Return the addresses by row and column at which a node accesses a buffer; None where they are not known."""
    key = "addresses", name, kinds, rows, columns, outer
    return made_once(body, key, partial(_found_addresses, body, name, kinds, rows, columns, outer))


def _found_addresses(
    body: LoopBody, name: str, kinds: tuple[str, ...], rows: Extent, columns: Extent, outer: int | None
) -> set[sympy.Expr] | None:
    from torch._inductor.loop_body import MemoryUsageType

    digits = loop_digits(body, rows, columns, outer)
    usage = [(kind, entry) for kind in MemoryUsageType for entry in body.memory_usage.get(kind, ())]
    entries = [(kind, entry) for kind, entry in usage if entry.buffer_name == name]
    known = [body.indexing_exprs[entry.index_name] for kind, entry in entries if kind.name in kinds]
    if digits is None or len(known) != len(entries) or not known:
        return None
    if any(entry.mode is not None for _, entry in entries):
        return None
    places = [sympy.sympify(index).subs(digits, simultaneous=True) for index in known]
    ranges = {ROW: sympy.sympify(rows), COLUMN: sympy.sympify(columns)}
    found = {simplified(place, ranges) for place in places}
    known_symbols = {ROW, COLUMN, *ranges[ROW].free_symbols}
    return found if all(place.free_symbols <= known_symbols for place in found) else None


def loaded_at(body: LoopBody, name: str) -> list[sympy.Expr]:
    """Return the addresses, by the variables of loops, at which they load from a buffer."""
    from torch._inductor.loop_body import MemoryUsageType

    entries = body.memory_usage.get(MemoryUsageType.LOAD, ())
    return [sympy.expand(body.indexing_exprs[entry.index_name]) for entry in entries if entry.buffer_name == name]


def simplified(index: sympy.Expr, ranges: Mapping[sympy.Symbol, sympy.Expr]) -> sympy.Expr:
    """Return the sum that an index is where its variables have these ranges."""
    from torch._inductor.virtualized import V

    return sympy.expand(V.graph.sizevars.simplify_with_ranges(index, ranges))


def loop_digits(
    body: LoopBody, rows: Extent, columns: Extent, outer: int | None = None
) -> dict[sympy.Symbol, sympy.Expr] | None:
    """Return the variables of loops by row and column; None where a loop does not end with a row."""
    last = len(body.iter_vars) if outer is None else outer
    (iterated, reduced), kept = body.sizes, body.iter_vars
    variables, sizes = [*kept[:last], *body.reduce_vars, *kept[last:]], [*iterated[:last], *reduced, *iterated[last:]]
    width = 1 if are_equal(prod(sizes), rows) else columns
    digits, step = {}, 1
    for variable, size in reversed(list(zip(variables, map(as_extent, sizes), strict=True))):
        digit = _digit(step, size, width, variable is variables[0])
        if digit is None:
            return None
        digits[variable] = digit
        step = as_extent(step * size)
    return digits


def with_loops(
    body: LoopBody,
    rows: Extent,
    columns: int,
    sizes: Sequence[sympy.Expr],
    place: Callable[[Sequence[sympy.Symbol]], tuple[sympy.Expr, sympy.Expr]],
) -> LoopBody | None:
    """Return loops that go over a tile, or its rows, in another way, and reduce the same; None where that is not known.

    sizes: of the other loops; place: returns (row, column) for their variables.
    """
    digits = loop_digits(body, rows, columns)
    if digits is None:
        return None

    def run(indices: Sequence[sympy.Symbol], reduced: Sequence[sympy.Symbol]) -> None:
        at, ranges = dict(zip((ROW, COLUMN), place(indices), strict=True)), dict(zip(indices, sizes, strict=True))
        kept = [digits[variable].subs(at, simultaneous=True) for variable in body.iter_vars]
        body([simplified(index, ranges) for index in kept], reduced)

    return remake_loop_body(run, sizes, body.sizes[1])


def _digit(step: Extent, size: Extent, width: Extent, outermost: bool = False) -> sympy.Expr | None:
    """Return the digit of weight `step` of an element's number, which has `size` values."""
    if step % width == 0:
        return _digit_of_row(step // width, size, outermost)
    if width % (step * size) == 0:
        return ModularIndexing(COLUMN, step, size)
    if width % step == 0 and step * size % width == 0:  # the loop goes over rows and over columns
        return FloorDiv(COLUMN, step) + width // step * _digit_of_row(1, step * size // width, outermost)
    return None


def _digit_of_row(step: Extent, size: Extent, outermost: bool) -> sympy.Expr:
    """Return the digit of weight `step` of a row's number: of the outermost loop it is what is left of the number."""
    if outermost:
        return FloorDiv(ROW, step)
    return ModularIndexing(ROW, step, size)
