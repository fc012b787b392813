"""Have one iteration compute, one by one, the several results of a node that one iteration of another reads.

The difference of two heads' softmax reads the maxima and sums of both. In loops over all heads these are results of
different iterations, and no band has them together. In loops over pairs of heads one iteration reduces two rows, and
the other node has the same rows. The results of two heads may be a size apart: the number of tokens.

The gradient of a softmax over a few experts reads the results of all experts, and that of its own one. The loop over
experts is then unrolled in that node, too: each of its results is of one iteration that has them all.

A sum of a few rows, each with its weight of a softmax, reads the products of all of them, which Inductor stores: a loop
over the rows is unrolled in what computes the products, and each lane adds up its own.

The gradient of the weights by which the outputs of a few experts are added up is a product with each of these outputs,
and reads one row for all of them. In a loop over experts no iteration has the band's row, so that loop is unrolled: one
iteration reduces a row for each expert.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TypeAlias

import sympy

from .access import exact_quotient
from .loops import Factors, NodeLoops, with_strides

#: The most results of an iteration: the code of a kernel has its loops once for each.
MAX_PIECES = 8

#: (position of a loop of a node, what takes its place: outer, unrolled, inner).
_Cut: TypeAlias = "tuple[int, list[sympy.Expr]]"


@dataclass(frozen=True)
class Step:
    """Say which results one iteration reads: `count` of them, so many elements of a buffer apart, a number or a size.

    own: the position among the reader's loops of one that goes over these results, too; None where there is none.
    """

    buffer: str
    count: int
    apart: sympy.Expr
    own: int | None = None


def loops_in_pieces(nodes: Sequence[NodeLoops], rows: Sequence[Factors]) -> list[tuple[Factors, int | None]] | None:
    """Return for each node its loops, and which one of its iteration loops to unroll; None where there is nothing to.

    rows: the factors of each node's loops, those of a reduction last. Nodes of one kernel are cut alike, what they
    have inside of the loop that is cut may differ: a kernel may reduce blocks, and store a scale of each.
    """
    found: dict[int, _Cut] = {}
    ways = _cuts_of_reductions(nodes, rows), _cuts_of_common_rows(nodes, rows), _cuts_of_products(nodes, rows)
    for kernel, cut in next(filter(None, map(list, ways)), ()):
        found.setdefault(kernel, cut)
    alike = [_alike(kernel, position, nodes, rows) for kernel, (position, _) in found.items()]
    if not found or not all(alike):
        return None
    return [
        _unrolled(own, *found[node.kernel]) if node.kernel in found else (own, None)
        for node, own in zip(nodes, rows, strict=True)
    ]


def _cuts_of_reductions(nodes: Sequence[NodeLoops], rows: Sequence[Factors]) -> Iterator[tuple[int, _Cut]]:
    """Yield the cuts of kernels that reduce, and of what reads their results in steps."""
    return _cuts(nodes, rows, {node.kernel for node in nodes if node.reduction})


def _cuts_of_products(nodes: Sequence[NodeLoops], rows: Sequence[Factors]) -> Iterator[tuple[int, _Cut]]:
    """Yield the cuts of what is read in steps of a loop that is unrolled whole, whoever reads it."""
    return _cuts(nodes, rows, {node.kernel for node in nodes}, whole=True)


def _cuts(
    nodes: Sequence[NodeLoops], rows: Sequence[Factors], kernels: AbstractSet[int], whole: bool = False
) -> Iterator[tuple[int, _Cut]]:
    """Yield (kernel, where to cut the loops of its nodes) for each node that is read in steps, and for its reader.

    kernels: those of such nodes; whole: only where all of a loop is unrolled.
    """
    for node, own in zip(nodes, rows, strict=True):
        if node.kernel not in kernels:
            continue
        for reader, step in _steps(node, nodes):
            cut = _cut(node, own, step)
            if cut is None or (whole and not _is_whole(cut)):
                continue
            yield node.kernel, cut
            if step.own is not None and len(rows[reader][step.own]) == 1:
                yield nodes[reader].kernel, _whole_loop(rows[reader], step.own)


def _is_whole(cut: _Cut) -> bool:
    """Return True if all of a loop is unrolled: halves of a row are the same loop's, and lanes of both are one's."""
    _, (outer, _, inner) = cut
    return bool(outer == 1 and inner == 1)


def _cuts_of_common_rows(nodes: Sequence[NodeLoops], rows: Sequence[Factors]) -> Iterator[tuple[int, _Cut]]:
    """Yield (kernel, the cut of a loop) for nodes that reduce a row of another kernel's in each of its iterations."""
    for node, own in zip(nodes, rows, strict=True):
        others = {name for other in nodes if other.kernel != node.kernel for name, _ in other.strides}
        for loop in _loops_beside_rows(node, others):
            cut = _whole_loop(own, loop) if len(own[loop]) == 1 else None
            if cut is not None and _alike(node.kernel, cut[0], nodes, rows):
                yield node.kernel, cut


def _loops_beside_rows(node: NodeLoops, buffers: set[str]) -> list[int]:
    """Return the short iteration loops of a node in all iterations of which it reduces the same row of some buffer."""
    first = len(node.iteration)
    reduced = [own for name, own in node.strides if name in buffers and any(stride != 0 for stride in own[first:])]
    short = [n for n, extent in enumerate(node.iteration) if extent.is_Integer and 1 < extent <= MAX_PIECES]
    return [n for n in short if any(own[n] == 0 for own in reduced)]


def _whole_loop(factors: Factors, loop: int) -> _Cut:
    """Return the cut that unrolls all of a loop without factors."""
    (extent,) = factors[loop]
    return sum(map(len, factors[:loop])), [sympy.Integer(1), extent, sympy.Integer(1)]


def _alike(kernel: int, position: int, nodes: Sequence[NodeLoops], rows: Sequence[Factors]) -> bool:
    """Return True if the iteration loops of all nodes of a kernel are the same, as far as the one at a position."""
    pairs = zip(nodes, rows, strict=True)
    own = [itertools.chain(*factors[: len(node.iteration)]) for node, factors in pairs if node.kernel == kernel]
    outer = [list(itertools.islice(loops, position + 1)) for loops in own]
    return all(loops == outer[0] and len(loops) > position for loops in outer)


def _steps(node: NodeLoops, nodes: Sequence[NodeLoops]) -> list[tuple[int, Step]]:
    """Return (number of a node of another kernel, in which steps it reads what a node stores)."""
    others = [number for number, other in enumerate(nodes) if other.kernel != node.kernel]
    found = ((number, _step(buffer, nodes[number])) for buffer in sorted(node.stored) for number in others)
    return [(number, step) for number, step in found if step is not None]


def _step(buffer: str, reader: NodeLoops) -> Step | None:
    """Return in which equal steps one iteration of a node reads a buffer; None where it does not."""
    indices = [sympy.expand(index) for name, index in reader.indices if name == buffer]
    step = _equal_step(buffer, indices, reader)
    if step is not None or not indices:
        return step
    loops = zip(reader.variables, reader.iteration, strict=False)
    found = (_step_with_own(buffer, indices, reader, place, *loop) for place, loop in enumerate(loops))
    return next((step for step in found if step is not None), None)


def _equal_step(buffer: str, indices: Sequence[sympy.Expr], reader: NodeLoops) -> Step | None:
    """Return the equal steps in which indices differ, whatever the iteration is; None where they do not."""
    offsets = {sympy.expand(index - indices[0]) for index in indices}
    if not 1 < len(offsets) <= MAX_PIECES or any(offset.has(*reader.variables) for offset in offsets):
        return None
    unit = _common_size(offsets)
    if unit is None:
        return None
    multiples = [exact_quotient(offset, unit) for offset in offsets]
    numbers = sorted(int(multiple) for multiple in multiples if multiple is not None and multiple.is_Integer)
    if len(numbers) != len(offsets):
        return None
    first, *rest = numbers
    apart = rest[0] - first
    equal = [first + number * apart for number in range(len(offsets))] == numbers
    return Step(buffer, len(offsets), apart * unit) if equal else None


def _common_size(offsets: Iterable[sympy.Expr]) -> sympy.Expr | None:
    """Return what one of the offsets is a multiple of, 1 or a size; None where its sign is not known."""
    _, size = min((offset for offset in offsets if offset != 0), key=str).primitive()
    return next((signed for signed in (size, -size) if signed.is_nonnegative), None)


def _step_with_own(
    buffer: str,
    indices: Sequence[sympy.Expr],
    reader: NodeLoops,
    place: int,
    variable: sympy.Symbol,
    extent: sympy.Expr,
) -> Step | None:
    """Return the equal steps of the indices without a loop's variable, if that loop goes over the same results."""
    own = [index for index in indices if variable in index.free_symbols]
    others = [index for index in indices if variable not in index.free_symbols]
    step = _equal_step(buffer, others, reader)
    if not own or step is None or step.count != extent:
        return None
    first = next(index for index in others if sympy.expand(index - step.apart) not in others)
    same = all(sympy.expand(index - first - step.apart * variable) == 0 for index in own)
    return replace(step, own=place) if same else None


def _cut(node: NodeLoops, factors: Factors, step: Step) -> _Cut | None:
    """Return the cut of a node's iteration loop at which the results of a step are; None without one."""
    strides = next((own for buffer, own in node.strides if buffer == step.buffer), [])
    iteration = list(zip(factors, strides, strict=False))[: len(node.iteration)]
    loops = [loop for own in iteration for loop in reversed(with_strides(*own))]
    for position, (extent, stride) in enumerate(loops):
        inner = exact_quotient(step.apart, stride) if _is_positive(stride) else None
        outer = None if inner is None else exact_quotient(extent, inner * step.count)
        if outer is not None and _is_positive(outer):
            return position, [outer, sympy.Integer(step.count), inner]
    return None


def _is_positive(extent: sympy.Expr) -> bool:
    """Return True for a number above zero, and for a size: where that is zero, no loop has an iteration."""
    return bool(extent != 0 and extent.is_nonnegative)


def _unrolled(factors: Factors, position: int, parts: list[sympy.Expr]) -> tuple[Factors, int]:
    """Put parts in the place of one of all loops; return the position of the second part among all loops as well."""
    kept = [part for number, part in enumerate(parts) if number == 1 or part != 1]
    cut: Factors = []
    passed = 0
    for own in factors:
        place = position - passed
        passed += len(own)
        cut.append([*own[:place], *kept, *own[place + 1 :]] if 0 <= place < len(own) else list(own))
    return cut, position + (parts[0] != 1)
