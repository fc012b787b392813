"""Kernels of sums in groups of rows, of which a kernel of the same rows can have the first stage."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass

from .. import inductor
from ..inductor import mixed, row_order, tiles
from ..inductor.columns import is_column_part
from ..inductor.grouped_sums import GroupedSum, grouped_sums
from ..inductor.protocols import Kernel, LoopNode, Schedule
from ..inductor.row_order import RowOrder, orders_of_rows
from ..inductor.sizes import Extent
from ..reasons import Unsupported
from .independence import find_obstacle, replaced_by_parts


@dataclass(frozen=True)
class Stages:
    """Say what becomes of a kernel with sums in groups of rows.

    sums: those in two stages now; before: nodes that are over the same tile, and the kernel has before it has a sum;
    after: the sums, which are second stages, and all that is left.
    """

    whole: Kernel
    sums: list[GroupedSum]
    before: list[LoopNode]
    after: list[LoopNode]


@dataclass(frozen=True)
class Staged:
    """Hold a kernel (`whole`) that is two: the first stages of its sums, and the second ones.

    cost: of the kernel that there was, in bytes.
    """

    whole: Kernel
    first: Kernel
    second: Kernel
    cost: int

    def in_schedule(self, schedule: Schedule) -> Schedule:
        """Return the schedule with both in the place of the one."""
        return replaced_by_parts(schedule, self.whole, self.first, self.second)


def tiles_of_groups(kernel: Kernel, others: Iterable[Kernel]) -> list[tuple[Extent, int]]:
    """Return (rows, columns) of the tiles whose columns a kernel adds up in groups of rows, beside others of that tile.

    A buffer of the size of the tile is in both at the same place for each row and column. Unsupported where the columns
    are a symbol.
    """
    if find_obstacle(kernel) is not None:
        return []
    known = [one for node in inductor.loop_nodes(kernel) for one in grouped_sums(node)]
    nodes = [node for other in others if other is not kernel for node in _nodes_of_loops(other)] if known else []
    found = [(one.rows, one.columns) for one in known if any(_same_places(one, node) for node in nodes)]
    return list(dict.fromkeys(found))


def _nodes_of_loops(kernel: Kernel) -> list[LoopNode]:
    return inductor.loop_nodes(kernel) if find_obstacle(kernel) is None or mixed.is_mixed(kernel) else []


def _same_places(one: GroupedSum, node: LoopNode) -> bool:
    """Return True if a node is over the tile of a sum, and uses a buffer of its size as the sum does."""
    if is_column_part(node) or not tiles.covers_tile(node, one.rows, one.columns):
        return False
    used = inductor.buffers_read(node) | inductor.buffers_made(node)
    body, other, extents = inductor.node_body(one.node), inductor.node_body(node), (one.rows, one.columns)
    return any(
        tiles.places(body, name, *extents, one.loops) & tiles.places(other, name, *extents)
        for name in inductor.buffers_read(one.node) & used
        if _is_of_size(name, inductor.size_hint(one.rows) * one.columns)
    )


def orders_of_segments(kernel: Kernel, others: Iterable[Kernel]) -> list[RowOrder]:
    """Return the orders in which others go over segments of the rows whose columns a kernel adds up.

    A buffer of the size of the tile is in both at the same place for each row and column. Unsupported where the columns
    are a symbol.
    """
    if find_obstacle(kernel) is not None:
        return []
    nodes = [
        node
        for other in others
        if other is not kernel and find_obstacle(other) is None
        for node in inductor.loop_nodes(other)
    ]
    return list(dict.fromkeys(order for sums in inductor.loop_nodes(kernel) for order in orders_of_rows(sums, nodes)))


def put_in_order(kernels: Iterable[Kernel], order: RowOrder, undo: contextlib.ExitStack) -> list[Kernel]:
    """Have kernels go over the rows of a tile in another order, until `undo` is closed; return those that can."""
    return [kernel for kernel in kernels if _put_in_order(kernel, order, undo)]


def _put_in_order(kernel: Kernel, order: RowOrder, undo: contextlib.ExitStack) -> bool:
    if find_obstacle(kernel) is not None:
        return False
    summed: set[str] = set()  # and what follows on sums in one stage, which is over no tile
    with contextlib.suppress(Unsupported), contextlib.ExitStack() as back:
        for node in inductor.loop_nodes(kernel):
            waits = bool(inductor.buffers_awaited(node) & summed)
            if waits or row_order.adds_up_rows(node):
                summed |= inductor.buffers_made(node)
            if not waits:
                row_order.put_in_order(node, order, back)
        undo.push(back.pop_all())
        return True
    return False


def stages_of(kernel: Kernel, rows: Extent, columns: int) -> Stages | None:
    """Return what becomes of a kernel whose sums in groups of rows are of a tile; None for a kernel without such."""
    if find_obstacle(kernel) is not None:
        return None
    nodes = inductor.loop_nodes(kernel)
    known = [one for node in nodes for one in _of_numbers(node) if (one.rows, one.columns) == (rows, columns)]
    sums = [one for one in known if _is_along_columns(one)]
    waiting = set().union(*(inductor.buffers_made(one.node) for one in sums))
    before: list[LoopNode] = []
    after: list[LoopNode] = []
    for node in nodes:
        waits = bool(inductor.buffers_awaited(node) & waiting) or inductor.buffers_made(node) <= waiting
        in_tile = not waits and (tiles.covers_tile(node, rows, columns) or tiles.covers_rows(node, rows))
        (before if in_tile else after).append(node)
        waiting |= set() if in_tile else inductor.buffers_made(node)
    return Stages(kernel, sums, before, after) if sums else None


def _is_along_columns(one: GroupedSum) -> bool:
    """Return True if neighbours of the columns of a sum are neighbours in memory, in a buffer of the tile's size.

    What is reduced along the rows of a square has as many rows and columns the other way around.
    """
    body, size = inductor.node_body(one.node), inductor.size_hint(one.rows) * one.columns
    large = {name for name in inductor.buffers_read(one.node) if _is_of_size(name, size)}
    return any(tiles.places(body, name, one.rows, one.columns, one.loops) for name in large)


def _is_of_size(name: str, elements: int) -> bool:
    return inductor.size_hint(inductor.buffer_numel(name)) >= elements


def _of_numbers(node: LoopNode) -> list[GroupedSum]:
    with contextlib.suppress(Unsupported):
        return grouped_sums(node)
    return []
