"""Kernels that store the rows of a tile in another order than that in which others load them to add up its columns.

The gradient of scores has the queries of one head one after the other, and so has what rotates it back.  The gradient
of a norm of heads goes over all heads of a token, as what was normalised lies in memory.  What stores rows that are
independent of each other may do so in any order: in that of the tile, the row is still in the program's registers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

from .. import inductor
from ..inductor import columns as sums
from ..inductor import tiles
from ..inductor.protocols import Kernel, LoopBody, LoopNode
from ..inductor.row_order import RowOrder, order_of_tile
from ..inductor.sizes import Extent
from .column_groups import put_in_order
from .column_sums import goes_over, only_extents
from .independence import find_obstacle

#: Bytes that memory gives at once, at least. Rows of these are as far apart as any, and nothing beside them is loaded.
_BYTES_AT_ONCE = 64


def orders_of_writers(kernel: Kernel, others: Iterable[Kernel]) -> list[tuple[Kernel, RowOrder]]:
    """Return the kernels that store rows of a kernel's tile in another order, each with that in which it loads them.

    Unsupported where the kernel has no tile.
    """
    rows, columns = only_extents(kernel)
    found = []
    for other in others:
        order = _order_of(kernel, other, rows, columns) if other is not kernel else None
        if order is not None and _may_turn(other, rows, columns):
            found.append((other, order))
    return found


def turn(writers: Sequence[tuple[Kernel, RowOrder]], undo: contextlib.ExitStack) -> list[Kernel]:
    """Have kernels go over their rows in other orders, until `undo` is closed; return those that can."""
    return [kernel for writer, order in writers for kernel in put_in_order([writer], order, undo)]


def _order_of(kernel: Kernel, other: Kernel, rows: Extent, columns: int) -> RowOrder | None:
    """Return the only order in which a kernel loads the rows that another stores; None if they are in that order."""
    written = inductor.buffers_made(other)
    orders = {
        order_of_tile(_in_tile(node), name, rows, columns)
        for node in inductor.loop_nodes(kernel)
        for name in inductor.buffers_read(node) & written
    }
    order = orders.pop() if len(orders) == 1 else None
    return None if order is None or order.is_own else order


def _in_tile(node: LoopNode) -> LoopBody:
    """Return the loops of a node over its tile; those of a sum of columns as a program has them."""
    return sums.column_sum(node).tile if sums.is_column_part(node) else inductor.node_body(node)


def _may_turn(kernel: Kernel, rows: Extent, columns: int) -> bool:
    """Return True if a kernel goes over rows of a tile, adds up none of its columns, and memory gives it whole rows."""
    nodes = inductor.loop_nodes(kernel) if find_obstacle(kernel) is None else []
    if not nodes or any(map(sums.is_column_part, nodes)) or not goes_over(kernel, rows, columns):
        return False
    in_rows = {columns * tiles.ROW + tiles.COLUMN}
    stored = [(node, name) for node in nodes for name in inductor.buffers_made(node)]
    large = [(node, name) for node, name in stored if tiles.covers_tile(node, rows, columns)]
    return all(
        columns * inductor.buffer_dtype(name).itemsize % _BYTES_AT_ONCE == 0
        and tiles.places(inductor.node_body(node), name, rows, columns) == in_rows
        for node, name in large
    )
