"""Loops of a group that reduces blocks of a tile along several of its axes: for scales of rows and of columns, say.

Each node goes over the blocks first, and then over the elements of one: what is reduced in a block of 32 x 32 needs
nothing of other blocks, whichever axis it is along.  Loops are cut where those of others end in memory that both
access; two that go through it in the same steps are over one axis.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import sympy

from .loops import Factors, NodeLoops, digits

#: Rounds in which cuts go from node to node, by the buffers that they share.
MAX_ROUNDS = 4

#: Elements of the largest block: registers have to hold them.
MAX_ELEMENTS = 1 << 14


@dataclass(frozen=True)
class OrderedLoops:
    """The loops of a node: those that take the place of each of its own, and the order of the iteration's.

    order: outermost first, by their places among the factors.
    """

    factors: Factors
    order: list[int]


class _Step(NamedTuple):
    """A loop of a node (by number and place) that moves through a buffer, so many elements with each iteration."""

    node: int
    place: int
    buffer: str
    step: int
    extent: sympy.Expr


@dataclass(frozen=True)
class _Axis:
    """One axis of the tile: its loops, as (node, place); reducing: the nodes that reduce it."""

    loops: frozenset[tuple[int, int]]
    reducing: frozenset[int]

    def places(self, node: int) -> list[int]:
        """Return the places of a node's loops over the axis."""
        return sorted(place for number, place in self.loops if number == node)


def loops_of_tiles(nodes: list[NodeLoops]) -> list[OrderedLoops] | None:
    """Return loops over the blocks of a tile, and in each over its elements; None where blocks have only one axis.

    >>> i, j, k = sympy.symbols("i j k", integer=True, nonnegative=True)
    >>> four, eight, many = (sympy.Integer(size) for size in (4, 8, 32))
    >>> rows = NodeLoops([many, four], [eight], 0, variables=[i, j, k], indices=[("x", 32 * i + 8 * j + k)])
    >>> columns = NodeLoops([eight, many], [four], 1, variables=[i, j, k], indices=[("x", 128 * i + j + 32 * k)])
    >>> [(own.factors, own.order) for own in loops_of_tiles([rows, columns])]
    [([[8, 4], [4], [8]], [0, 2, 1]), ([[8], [4, 8], [4]], [0, 1, 2])]
    """
    cut = _cut_alike(nodes) if _reduce_apart(nodes) else None
    if cut is None:
        return None
    steps = list(_steps(nodes, cut))
    axes = _in_order(steps, _axes(nodes, cut, steps))
    blocks = [axis for axis in axes if not axis.reducing]
    inside = [axis for axis in axes if axis.reducing]
    if len(inside) < 2 or not _fit(inside, steps):
        return None
    awaited = _awaited(nodes, inside)
    orders = [
        _order(number, _count(node, own), blocks, sorted(inside, key=awaited[number].__contains__))
        for number, (node, own) in enumerate(zip(nodes, cut, strict=True))
    ]
    if any(order is None for order in orders):
        return None
    return [OrderedLoops(own, order or []) for own, order in zip(cut, orders, strict=True)]


def _reduce_apart(nodes: list[NodeLoops]) -> bool:
    """Return True if nodes reduce along several axes of one buffer."""
    reduced: dict[str, set[tuple[sympy.Expr, ...]]] = {}
    for node in (node for node in nodes if node.reduction):
        for buffer, index in node.indices:
            inner = tuple(index.coeff(variable) for variable in node.variables[len(node.iteration) :])
            reduced.setdefault(buffer, set()).update([inner] if any(inner) else [])
    return any(len(found) > 1 for found in reduced.values())


def _cut_alike(nodes: list[NodeLoops]) -> list[Factors] | None:
    """Cut the loops of each node where those of others end in memory; None where that would cut what is reduced."""
    cut: list[Factors] = [[[extent] for extent in (*node.iteration, *node.reduction)] for node in nodes]
    for _ in range(MAX_ROUNDS):
        ends: dict[str, set[int]] = {}
        for one in _steps(nodes, cut):
            ends.setdefault(one.buffer, set()).add(one.step)
        again = [_cut(node, ends) for node in nodes]
        if again == cut:
            reduced = [part for node, own in zip(nodes, cut, strict=True) for part in own[len(node.iteration) :]]
            return cut if all(len(part) == 1 for part in reduced) else None
        cut = again
    return None


def _cut(node: NodeLoops, ends: dict[str, set[int]]) -> Factors:
    """Cut the loops of a node where their steps through a buffer come to those of other loops."""
    loops: Factors = []
    for place, extent in enumerate((*node.iteration, *node.reduction)):
        cuts: set[int] = set()
        for buffer, index in node.indices:
            step = _step(index, node, place, 1, extent)
            cuts |= {end // step for end in ends.get(buffer, ()) if step and end % step == 0}
        loops.append(digits(extent, sorted(cuts)))
    return loops


def _step(index: sympy.Expr, node: NodeLoops, place: int, inner: sympy.Expr | int, extent: sympy.Expr) -> int:
    """Return how far a loop moves with each iteration, if that is a positive number and all are alike, else 0.

    place: of the node's loop that it is a part of; inner: iterations of the parts within it.
    """
    variable = node.variables[place]
    if variable not in index.free_symbols:
        return 0
    first, second, last = (_at(index, node, {variable: inner * number}) for number in (0, 1, extent - 1))
    step = sympy.expand(second - first)
    alike = sympy.expand(last - first - step * (extent - 1)) == 0
    return int(step) if step.is_Integer and step > 0 and alike else 0


def _at(index: sympy.Expr, node: NodeLoops, values: dict[sympy.Symbol, sympy.Expr]) -> sympy.Expr:
    """Return an index in the first iteration of all loops but those whose variables have values."""
    return index.subs({**dict.fromkeys(node.variables, sympy.Integer(0)), **values})


def _steps(nodes: list[NodeLoops], cut: list[Factors]) -> Iterator[_Step]:
    """Yield the steps of all loops through buffers, as far as they are numbers."""
    for number, (node, own) in enumerate(zip(nodes, cut, strict=True)):
        loops = [(loop, *part) for loop, parts in enumerate(own) for part in _parts(parts)]
        for buffer, index in node.indices:
            for place, (loop, inner, extent) in enumerate(loops):
                step = _step(index, node, loop, inner, extent)
                if step:
                    yield _Step(number, place, buffer, step, extent)


def _parts(parts: list[sympy.Expr]) -> list[tuple[sympy.Expr, sympy.Expr]]:
    """Return (iterations of those within, extent) of the loops that one was cut into, outermost first."""
    return [(sympy.sympify(prod(parts[place + 1 :])), extent) for place, extent in enumerate(parts)]


def _axes(nodes: list[NodeLoops], cut: list[Factors], steps: list[_Step]) -> list[_Axis]:
    """Return the axes: loops that go through a buffer in the same steps are over one."""
    together: dict[tuple[int, int], set[tuple[int, int]]] = {}
    first: dict[tuple[str, int, sympy.Expr], tuple[int, int]] = {}
    for one in steps:
        loop = one.node, one.place
        other = first.setdefault((one.buffer, one.step, one.extent), loop)
        both = together.setdefault(loop, {loop}) | together[other]
        together.update(dict.fromkeys(both, both))
    counts = [_count(node, own) for node, own in zip(nodes, cut, strict=True)]
    groups = dict.fromkeys(map(frozenset, together.values()))
    return [_Axis(loops, frozenset(node for node, place in loops if place >= counts[node])) for loops in groups]


def _count(node: NodeLoops, own: Factors) -> int:
    """Return how many of a node's loops are none of its reduction."""
    return sum(map(len, own[: len(node.iteration)]))


def _in_order(steps: list[_Step], axes: list[_Axis]) -> list[_Axis]:
    """Return the axes as an access that has them all goes through memory; none where there is no such access."""
    accesses: dict[tuple[int, str], dict[_Axis, int]] = {}
    for one in steps:
        (axis,) = (axis for axis in axes if (one.node, one.place) in axis.loops)
        accesses.setdefault((one.node, one.buffer), {})[axis] = one.step
    whole = next((found for found in accesses.values() if len(found) == len(axes)), {})
    return sorted(whole, key=lambda axis: -whole[axis])


def _fit(axes: list[_Axis], steps: list[_Step]) -> bool:
    """Return True if a block has a number of elements, which registers hold."""
    extents = {(one.node, one.place): one.extent for one in steps}
    elements = prod(extents[min(axis.loops)] for axis in axes)
    return bool(elements.is_Integer and elements <= MAX_ELEMENTS)


def _awaited(nodes: list[NodeLoops], axes: list[_Axis]) -> list[set[_Axis]]:
    """Return for each node the axes of which something is reduced before it, or by it."""
    behind: dict[str, set[_Axis]] = {}
    awaited = []
    for number, node in enumerate(nodes):
        own = {axis for axis in axes if number in axis.reducing}
        own = own.union(*(behind.get(buffer, set()) for buffer, _ in node.indices))
        behind.update(dict.fromkeys(node.stored, own))
        awaited.append(own)
    return awaited


def _order(node: int, count: int, blocks: list[_Axis], inside: list[_Axis]) -> list[int] | None:
    """Return the order of a node's loops: over the blocks, then inside of one.

    What is reduced of a block is a segment of its lanes: the axes that the node waits for come last. None where it has
    not one loop over each axis of the blocks, or other loops.
    """
    places = [[place for place in axis.places(node) if place < count] for axis in (*blocks, *inside)]
    order = [place for own in places for place in own]
    whole = all(len(own) == 1 for own in places[: len(blocks)]) and all(len(own) < 2 for own in places)
    return order if whole and len(order) == count else None
