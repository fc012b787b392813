"""Choose the order of a kernel's rows: where a row is far apart in memory, its elements' neighbours are in other rows.

An image of channels in planes is stored along its lines. A kernel of rows of channels that goes over windows of the
image has few pixels of a line one after the other. If it goes over lines instead, a block has neighbours of each
channel. What is contiguous along a row is so in each order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

import sympy

from ... import inductor
from ...inductor.protocols import LoopNode
from .lanes import digits
from .programs import elements_of_row

if TYPE_CHECKING:
    from .band import LiftedBand, LiftedNode


#: Elements of a row that no neighbours need to follow: 64 bytes of 16-bit numbers, which memory gives at a time.
SHORTEST_ROW = 32


@dataclass(frozen=True)
class LoopOrder:
    """Hold an order of the loops over rows.

    loops: new ones, outermost first, each with the numbers of those that it goes over, outermost first; sizes: of the
    loops that there were.
    """

    loops: tuple[tuple[int, ...], ...]
    sizes: tuple[sympy.Expr, ...]

    @property
    def extents(self) -> list[sympy.Expr]:
        """Return the extents of the new loops."""
        return [sympy.sympify(prod(self.sizes[loop] for loop in loops)) for loops in self.loops]

    def before(self, indices: Sequence[sympy.Expr]) -> list[sympy.Expr]:
        """Return the iteration of the loops that there were, by that of the new ones."""
        found: dict[int, sympy.Expr] = {}
        for index, loops in zip(indices, self.loops, strict=True):
            found.update(zip(loops, digits(index, [self.sizes[loop] for loop in loops]), strict=True))
        return [found[loop] for loop in range(len(self.sizes))]


def in_memory_order(band: LiftedBand, nodes: Iterable[LoopNode]) -> LiftedBand | None:
    """Return a band that goes over its rows as memory does which is far apart along them; None for one that does.

    nodes: with the band's loops.
    """
    sizes = _row_sizes(band)
    if len(sizes) < 2 or elements_of_row(band) < SHORTEST_ROW:
        return None
    order = best_order(sizes, inductor.accesses_far_apart(nodes, len(sizes)))
    return None if order is None else replace(band, nodes=[_in_order(node, order) for node in band.nodes])


def _row_sizes(band: LiftedBand) -> list[sympy.Expr]:
    """Return the extents of the loops over rows that all nodes of a band have; [] if they have others."""
    rows = next((node.iter_sizes for node in band.nodes if node.reduce_sizes), [])
    shared = all(list(node.iter_sizes[: len(rows)]) == list(rows) for node in band.nodes)
    return list(map(sympy.sympify, rows)) if shared else []


def best_order(sizes: Sequence[sympy.Expr], accesses: Sequence[inductor.RowAccess]) -> LoopOrder | None:
    """Return the order in which most bytes have neighbours; None if no order is better than the one that there is.

    sizes: of the loops over rows; accesses: what is far apart along rows.
    """
    present = tuple(range(len(sizes)))
    orders = {_order_of(access): access for access in accesses}
    near = {order: sum(one.moved for one in accesses if _is_near(one, order, sizes)) for order in (present, *orders)}
    best = max(near, key=near.__getitem__)  # the first of equals is the present one
    return None if best == present else LoopOrder(_coalesced(orders[best], best, sizes), tuple(sizes))


def _order_of(access: inductor.RowAccess) -> tuple[int, ...]:
    """Return the loops by the steps of an access, the longest outermost."""
    return tuple(sorted(range(len(access.steps)), key=lambda loop: -access.steps[loop]))


def _is_near(access: inductor.RowAccess, order: Sequence[int], sizes: Sequence[sympy.Expr]) -> bool:
    """Return True if rows that follow each other are neighbours, and Triton sees it: it does for an even number.

    Behind a loop of a symbolic size it sees none, whatever the typical one is.
    """
    seen = itertools.takewhile(lambda loop: sizes[loop].is_Integer, reversed(order))
    return inductor.contiguous_run((access.steps[loop], int(sizes[loop])) for loop in seen) % 2 == 0


def _coalesced(
    access: inductor.RowAccess, order: Sequence[int], sizes: Sequence[sympy.Expr]
) -> tuple[tuple[int, ...], ...]:
    """Return the loops of an order, with those in one that an access has one behind the other.

    One of a symbolic size is the outermost of them: each iteration is found by divisions by numbers alone.
    """
    found = [[order[0]]]
    for loop in order[1:]:
        if sizes[loop].is_Integer and access.steps[found[-1][-1]] == access.steps[loop] * sizes[loop]:
            found[-1].append(loop)
        else:
            found.append([loop])
    return tuple(map(tuple, found))


def _in_order(node: LiftedNode, order: LoopOrder) -> LiftedNode:
    """Return a node whose loops over rows have another order."""
    rows, count = len(order.sizes), len(order.loops)

    def body(iter_indices: list[sympy.Expr], reduce_indices: list[sympy.Expr]) -> None:
        """Run the node's loops."""
        node.body([*order.before(iter_indices[:count]), *iter_indices[count:]], reduce_indices)

    return replace(node, iter_sizes=[*order.extents, *node.iter_sizes[rows:]], body=body)
