"""Have one iteration compute, one by one, the several results of a node that one iteration of another reads.

The difference of two heads' softmax reads the maxima and sums of both. In loops over all heads these are results of
different iterations, and no band has them together. In loops over pairs of heads one iteration reduces two rows, and
the other node has the same rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import sympy

from .access import exact_quotient
from .loops import Factors, NodeLoops, with_strides

#: The most results of an iteration: the code of a kernel has its loops once for each.
MAX_PIECES = 8


@dataclass(frozen=True)
class Step:
    """Say which results one iteration reads: `count` of them, so many elements of a buffer apart."""

    buffer: str
    count: int
    apart: int


def loops_in_pieces(nodes: Sequence[NodeLoops], rows: Sequence[Factors]) -> list[tuple[Factors, int | None]] | None:
    """Return for each node its loops, and which one of its iteration loops to unroll; None where there is nothing to.

    rows: the factors of each node's loops, those of a reduction last. Nodes of one kernel are cut alike, what they
    have inside of the loop that is cut may differ: a kernel may reduce blocks, and store a scale of each.
    """
    found: dict[int, tuple[int, list[sympy.Expr]]] = {}
    for node, own in zip(nodes, rows, strict=True):
        for step in _steps(node, nodes):
            cut = _cut(node, own, step)
            if cut is not None:
                found.setdefault(node.kernel, cut)
    alike = [_alike(kernel, position, nodes, rows) for kernel, (position, _) in found.items()]
    if not found or not all(alike):
        return None
    return [
        _unrolled(own, *found[node.kernel]) if node.kernel in found else (own, None)
        for node, own in zip(nodes, rows, strict=True)
    ]


def _alike(kernel: int, position: int, nodes: Sequence[NodeLoops], rows: Sequence[Factors]) -> bool:
    """Return True if the iteration loops of all nodes of a kernel are the same, as far as the one at a position."""
    pairs = zip(nodes, rows, strict=True)
    own = [itertools.chain(*factors[: len(node.iteration)]) for node, factors in pairs if node.kernel == kernel]
    outer = [list(itertools.islice(loops, position + 1)) for loops in own]
    return all(loops == outer[0] and len(loops) > position for loops in outer)


def _steps(node: NodeLoops, nodes: Sequence[NodeLoops]) -> list[Step]:
    """Return in which steps the nodes of other kernels read what a node reduces."""
    readers = [other for other in nodes if other.kernel != node.kernel] if node.reduction else []
    found = (_step(buffer, reader) for buffer in sorted(node.stored) for reader in readers)
    return [step for step in found if step is not None]


def _step(buffer: str, reader: NodeLoops) -> Step | None:
    """Return in which equal steps one iteration of a node reads a buffer; None where it does not."""
    indices = [index for name, index in reader.indices if name == buffer]
    offsets = {sympy.expand(index - indices[0]) for index in indices}
    if not 1 < len(offsets) <= MAX_PIECES or not all(offset.is_Integer for offset in offsets):
        return None
    first, *rest = sorted(map(int, offsets))
    apart = rest[0] - first
    equal = [first + number * apart for number in range(len(offsets))] == [first, *rest]
    return Step(buffer, len(offsets), apart) if equal else None


def _cut(node: NodeLoops, factors: Factors, step: Step) -> tuple[int, list[sympy.Expr]] | None:
    """Return (position of a node's iteration loop, what takes its place: outer, unrolled, inner); None without one."""
    strides = next((own for buffer, own in node.strides if buffer == step.buffer), [])
    iteration = list(zip(factors, strides, strict=False))[: len(node.iteration)]
    loops = [loop for own in iteration for loop in reversed(with_strides(*own))]
    for position, (extent, stride) in enumerate(loops):
        if not (extent.is_Integer and stride.is_Integer and stride > 0) or step.apart % stride:
            continue
        inner = sympy.Integer(step.apart // stride)
        outer = exact_quotient(extent, inner * step.count)
        if outer is not None and outer > 0:
            return position, [outer, sympy.Integer(step.count), inner]
    return None


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
