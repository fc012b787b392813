"""Loops of a group that reduces blocks of a tile along several of its axes: for scales of rows and of columns, say.

Each node goes over the blocks first, and then over the elements of one: what is reduced in a block of 32 x 32 needs
nothing of other blocks, whichever axis it is along.  Loops are cut where those of others end in memory that both
access; two that go through it in the same steps are over one axis.

Blocks are square, so that one loop is over the rows of a block for what is reduced along rows, and over its columns for
what is reduced along columns: no iteration of it needs another.  Where 16 elements are reduced along one axis and 32
along the other, blocks have 32 x 32.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import NamedTuple

import sympy

from ... import inductor
from .access import ONE, ZERO, Prover, exact_quotient, expand
from .divisions import drop_divisions, whole_quotients
from .loops import Factors, NodeLoops, digits
from .trace import iteration_variable

#: Rounds in which cuts go from node to node, by the buffers that they share.
MAX_ROUNDS = 4

#: Elements of the largest block: registers have to hold them.
MAX_ELEMENTS = 1 << 14


@dataclass(frozen=True)
class OrderedLoops:
    """Hold the loops of a node: those that take the place of each of its own, and the order of the iteration's.

    order: outermost first, by their places among the factors.
    """

    factors: Factors
    order: list[int]


class _Step(NamedTuple):
    """Hold a loop of a node (by number and place) that moves through a buffer, so many elements with each iteration."""

    node: int
    place: int
    buffer: str
    step: sympy.Expr
    extent: sympy.Expr


@dataclass(frozen=True)
class _Axis:
    """Hold one axis of the tile: its loops, as (node, place); reducing: the nodes that reduce it."""

    loops: frozenset[tuple[int, int]]
    reducing: frozenset[int]

    def places(self, node: int, count: int) -> list[int]:
        """Return the places of a node's loops over the axis, of its first `count` loops."""
        return sorted(place for number, place in self.loops if number == node and place < count)


@dataclass(frozen=True)
class _Tile:
    """Hold the axes of a tile, as one access goes through a buffer: with the step and the extent of each."""

    buffer: str
    axes: dict[_Axis, tuple[sympy.Expr, sympy.Expr]]

    @property
    def inside(self) -> list[_Axis]:
        """Return the axes that are reduced."""
        return [axis for axis in self.axes if axis.reducing]

    @property
    def lengths(self) -> list[int]:
        """Return how many elements are reduced along the axes; empty where that is no number."""
        extents = [self.axes[axis][1] for axis in self.inside]
        return sorted(set(map(int, extents))) if all(extent.is_Integer for extent in extents) else []

    @property
    def side(self) -> int:
        """Return the elements of a block along each of its axes."""
        return math.lcm(*self.lengths)

    def along(self, axis: _Axis) -> list[_Axis]:
        """Return the axes in the block in the direction of one that is reduced: over parts of it, and that itself."""
        step, extent = self.axes[axis]
        outer = (expand(step * extent), self.side / extent)
        return [*(other for other, steps in self.axes.items() if steps == outer and not other.reducing), axis]


def loops_of_tiles(nodes: list[NodeLoops], prover: Prover) -> list[OrderedLoops] | None:
    """Return loops over the blocks of a tile, and in each over its elements; None where blocks have only one axis.

    prover: of sizes that are symbols, the same in indices as in loops.

    >>> i, j, k = sympy.symbols("i j k", integer=True, nonnegative=True)
    >>> four, eight, many = (sympy.Integer(size) for size in (4, 8, 32))
    >>> rows = NodeLoops([many, four], [eight], 0, variables=[i, j, k], indices=[("x", 32 * i + 8 * j + k)])
    >>> columns = NodeLoops([eight, many], [four], 1, variables=[i, j, k], indices=[("x", 128 * i + j + 32 * k)])
    >>> numbers = Prover(lambda condition: condition == sympy.true, int)
    >>> [(own.factors, own.order) for own in loops_of_tiles([rows, columns], numbers)]
    [([[4, 2, 4], [4], [8]], [0, 3, 1, 2]), ([[4, 2], [4, 2, 4], [4]], [0, 2, 3, 4, 1])]
    """
    memory = _Memory(prover)
    cut = _cut_alike(nodes, {}, memory) if _reduce_apart(nodes) else None
    tile = None if cut is None else _tile(nodes, cut, memory)
    if tile is not None and len(tile.lengths) > 1:
        ends = {expand(tile.axes[axis][0] * tile.side) for axis in tile.inside}
        cut = _cut_alike(nodes, {tile.buffer: ends}, memory)
        tile = None if cut is None else _tile(nodes, cut, memory)
    if cut is None or tile is None:
        return None
    awaited = _awaited(nodes, tile.inside)
    ordered = [_ordered(number, node, cut[number], tile, awaited[number]) for number, node in enumerate(nodes)]
    found = [own for own in ordered if own is not None]
    return found if len(found) == len(nodes) else None


def _reduce_apart(nodes: list[NodeLoops]) -> bool:
    """Return True if nodes reduce along several axes of one buffer."""
    reduced: dict[str, set[tuple[sympy.Expr, ...]]] = {}
    for node in (node for node in nodes if node.reduction):
        for buffer, index in node.indices:
            inner = tuple(inductor.coefficient(index, variable) for variable in node.variables[len(node.iteration) :])
            reduced.setdefault(buffer, set()).update([inner] if any(inner) else [])
    return any(len(found) > 1 for found in reduced.values())


class _Memory:
    """Tell how far loops move through memory, and order such steps."""

    def __init__(self, prover: Prover):
        """Find the steps of symbolic sizes once, which the graph of the prover decides; others are of all graphs."""
        self._prover = prover
        self._symbolic_step = functools.cache(self._find_symbolic_step)

    def ascending(self, steps: Iterable[sympy.Expr]) -> list[sympy.Expr]:
        """Return steps in order, by typical sizes."""
        return sorted(steps, key=lambda step: (self._prover.hint(step), str(step)))

    def step(self, index: sympy.Expr, node: NodeLoops, place: int, inner: sympy.Expr, extent: sympy.Expr) -> sympy.Expr:
        """Return how far a loop moves with each iteration, if that is positive and all are alike, else 0.

        place: of the node's loop that it is a part of; inner: iterations of the parts within it.
        """
        variable = node.variables[place]
        if variable not in index.free_symbols:
            return ZERO
        factor = inductor.linear_step(index, variable)
        if factor is not None:
            step = factor * inner
        elif (index.free_symbols - set(node.variables)) | inner.free_symbols:
            step = self._symbolic_step(index, tuple(node.variables), place, inner, extent)
        else:
            step = _step_of(index, tuple(node.variables), place, inner, extent)
        return step if step.is_positive else ZERO

    def _find_symbolic_step(
        self, index: sympy.Expr, variables: tuple[sympy.Symbol, ...], place: int, inner: sympy.Expr, extent: sympy.Expr
    ) -> sympy.Expr:
        """Return the factor of an iteration's number in an index of symbolic sizes, 0 if it is none of such terms."""
        number = iteration_variable(place)
        moved = whole_quotients(_at(index, variables, {variables[place]: inner * number}))
        moved = expand(drop_divisions(moved, {number: (ZERO, extent - 1)}, self._prover.known))
        step = moved.coeff(number)
        return step if number not in expand(moved - step * number).free_symbols else ZERO


@functools.lru_cache(maxsize=1 << 14)
def _step_of(
    index: sympy.Expr, variables: tuple[sympy.Symbol, ...], place: int, inner: sympy.Expr, extent: sympy.Expr
) -> sympy.Expr:
    """Return the elements from one iteration to the next, 0 if they are not alike.

    Once for the same loops: layers of a model have the same; variables: of all loops.
    """
    first, second, last = (_at(index, variables, {variables[place]: inner * n}) for n in (0, 1, extent - 1))
    step = sympy.expand(second - first)
    return step if sympy.expand(last - first - step * (extent - 1)) == 0 else ZERO


def _at(index: sympy.Expr, variables: tuple[sympy.Symbol, ...], values: dict[sympy.Symbol, sympy.Expr]) -> sympy.Expr:
    """Return an index in the first iteration of all loops but those whose variables have values."""
    return index.subs({**dict.fromkeys(variables, sympy.Integer(0)), **values})


def _cut_alike(nodes: list[NodeLoops], blocks: dict[str, set[sympy.Expr]], memory: _Memory) -> list[Factors] | None:
    """Cut the loops of each node where those of others end in memory; None where that would cut what is reduced.

    blocks: of buffers, where blocks end.
    """
    cut: list[Factors] = [[[extent] for extent in (*node.iteration, *node.reduction)] for node in nodes]
    for _ in range(MAX_ROUNDS):
        ends = {buffer: set(steps) for buffer, steps in blocks.items()}
        for one in _steps(nodes, cut, memory):
            ends.setdefault(one.buffer, set()).add(one.step)
        again = [_cut(node, ends, memory) for node in nodes]
        if again == cut:
            reduced = [part for node, own in zip(nodes, cut, strict=True) for part in own[len(node.iteration) :]]
            return cut if all(len(part) == 1 for part in reduced) else None
        cut = again
    return None


def _cut(node: NodeLoops, ends: dict[str, set[sympy.Expr]], memory: _Memory) -> Factors:
    """Cut the loops of a node where their steps through a buffer come to those of other loops."""
    loops: Factors = []
    for place, extent in enumerate((*node.iteration, *node.reduction)):
        cuts: set[sympy.Expr] = set()
        for buffer, index in node.indices:
            step = memory.step(index, node, place, ONE, extent)
            quotients = [exact_quotient(end, step) for end in ends.get(buffer, ()) if step]
            cuts.update(quotient for quotient in quotients if quotient is not None)
        loops.append(digits(extent, memory.ascending(cuts)))
    return loops


def _steps(nodes: list[NodeLoops], cut: list[Factors], memory: _Memory) -> Iterator[_Step]:
    """Yield the steps of all loops through buffers, as far as they are alike."""
    for number, (node, own) in enumerate(zip(nodes, cut, strict=True)):
        loops = [(loop, *part) for loop, parts in enumerate(own) for part in _parts(parts)]
        for (buffer, index), (place, (loop, inner, extent)) in product(node.indices, enumerate(loops)):
            step = memory.step(index, node, loop, inner, extent)
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


def _tile(nodes: list[NodeLoops], cut: list[Factors], memory: _Memory) -> _Tile | None:
    """Return the axes as one access goes through memory.

    None where no access has them all, one alone is reduced, or a block has more elements than registers hold.
    """
    steps = list(_steps(nodes, cut, memory))
    axes = _axes(nodes, cut, steps)
    accesses: dict[tuple[int, str], dict[_Axis, tuple[int, sympy.Expr]]] = {}
    for one in steps:
        (axis,) = (axis for axis in axes if (one.node, one.place) in axis.loops)
        accesses.setdefault((one.node, one.buffer), {})[axis] = (one.step, one.extent)
    for (_, buffer), found in accesses.items():
        if len(found) == len(axes):
            order = memory.ascending({step for step, _ in found.values()})
            tile = _Tile(buffer, dict(sorted(found.items(), key=lambda item: -order.index(item[1][0]))))
            known = len(tile.inside) > 1 and tile.lengths
            return tile if known and tile.side ** len(tile.inside) <= MAX_ELEMENTS else None
    return None


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


def _ordered(number: int, node: NodeLoops, own: Factors, tile: _Tile, awaited: set[_Axis]) -> OrderedLoops | None:
    """Return the loops of a node: over the blocks, then inside of one.

    What is reduced of a block is a segment of its lanes: the axes that the node waits for come last.  The others have
    loops of the same extents in all nodes.  None where it has not one loop over each axis of the blocks, or others.
    """
    count = _count(node, own)
    inside = [tile.along(axis) for axis in sorted(tile.inside, key=awaited.__contains__)]
    blocks = [axis.places(number, count) for axis in tile.axes if all(axis not in along for along in inside)]
    order = [place for places in blocks for place in places]
    parts = [[extent] for part in own for extent in part]
    for along in inside:
        places = [place for axis in along for place in axis.places(number, count)]
        order += places
        if along[-1] not in awaited:
            _split(parts, places, tile.lengths)
    if any(len(places) != 1 for places in blocks) or sorted(order) != list(range(count)):
        return None
    rest = iter(parts)
    factors = [[extent for _ in part for extent in next(rest)] for part in own]
    first = [sum(map(len, parts[:place])) for place in range(count)]
    return OrderedLoops(factors, [first[place] + n for place in order for n in range(len(parts[place]))])


def _split(parts: list[list[sympy.Expr]], places: list[int], lengths: list[int]) -> None:
    """Split loops over one side of a block where so many elements end; places: outermost first."""
    inner = 1
    for place in reversed(places):
        (extent,) = parts[place]
        parts[place] = digits(extent, [length // inner for length in lengths if length % inner == 0])
        inner *= int(extent)
