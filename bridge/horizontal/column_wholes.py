"""Sums of all elements of a tile, whose first stage a kernel over the tile can have: with a part for each row.

Inductor splits the gradient of a scale of one element by the number of elements: a part is no row. The kernel that
makes the gradient of the input beside it would be over the tile whose columns others add up.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import TYPE_CHECKING

import sympy

from .. import inductor
from ..inductor import tiles
from ..inductor.columns import is_column_part
from ..inductor.loops import made_once, set_loop_body
from ..inductor.plane_sums import PlaneSum, split_at_planes, sum_of_tile
from ..inductor.protocols import Kernel, LoopNode, Schedule
from ..inductor.sizes import Extent, size_hint
from ..lowering.triton import codegen
from ..reasons import Reason, Unsupported
from .independence import find_obstacle

if TYPE_CHECKING:  # A tile has such kernels.
    from .column_sums import Tile

#: Parts that a kernel which adds up those of all elements has at a time.
PARTS_AT_A_TIME = 2048


@dataclass(frozen=True)
class Wholes:
    """Hold a kernel that adds up all elements of a tile, and what it is as long as its sums have a part for each row.

    whole: as Inductor has it; sums: in two stages; now: the same nodes with loops over rows.
    """

    whole: Kernel
    sums: tuple[PlaneSum, ...]
    now: Kernel

    @property
    def steps(self) -> int:
        """Return how often what adds up the parts of a sum loads some, more often than it did, over all sums."""
        return sum(_steps(size_hint(one.parts)) - 1 for one in self.sums)


def _steps(parts: int) -> int:
    return ceil(parts / PARTS_AT_A_TIME)


def wholes_of(kernels: Iterable[Kernel], rows: int, columns: int) -> list[tuple[Kernel, list[PlaneSum]]]:
    """Return the kernels that add up all elements of a tile, and nothing else in two stages, with those sums."""
    found = []
    for kernel in kernels:
        if find_obstacle(kernel) is not None:
            continue
        own = [sum_of_tile(node, rows, columns) for node in inductor.loop_nodes(kernel) if is_column_part(node)]
        known = [one for one in own if one is not None]
        if known and len(known) == len(own):
            found.append((kernel, known))
    return found


def find_with_wholes(
    schedule: Schedule,
    undo: contextlib.ExitStack,
    extents: tuple[Extent, int],
    around: Iterable[Kernel],
    find: Callable[[Schedule, contextlib.ExitStack], tuple[Schedule, Tile]],
) -> tuple[Schedule, Tile] | None:
    """Return (the schedule, a tile in it) with sums of all elements in parts for each row, until `undo` is closed.

    extents: its rows and columns; around: kernels that may be in it; find: gives the tile of a schedule. None, with
    nothing changed, where none is in it.
    """
    rows, columns = extents
    if not isinstance(rows, int):
        return None
    known = wholes_of(around, rows, columns)
    while known:
        with contextlib.ExitStack() as back:
            changed, put = _put_in_rows(schedule, (rows, columns), known, back)
            changed, tile = find(changed, back)
            joined = [one for one in put if any(one.now is kernel for kernel in tile.kernels)]
            if len(joined) == len(put):
                undo.push(back.pop_all())
                return changed, replace(tile, wholes=tuple(put))
        known = [(kernel, own) for kernel, own in known if any(kernel is one.whole for one in joined)]
    return None


def _put_in_rows(
    schedule: Schedule,
    extents: tuple[int, int],
    known: Sequence[tuple[Kernel, list[PlaneSum]]],
    undo: contextlib.ExitStack,
) -> tuple[Schedule, list[Wholes]]:
    """Have these sums have a part for each row, until `undo` is closed; return the schedule, and its kernels."""
    for kernel, own in known:
        for one in own:
            split_at_planes(one, undo)
        for node in inductor.loop_nodes(kernel):
            _put_in_tile(node, *extents, undo)
    nodes = {node.get_name() for _, own in known for one in own for node in (one.part, one.total)}
    changed = [rebuilt(k, undo) if inductor.operation_names(k) & nodes else k for k in schedule]
    now = {id(kernel): new for kernel, new in zip(schedule, changed, strict=True)}
    return changed, [Wholes(kernel, tuple(own), now[id(kernel)]) for kernel, own in known]


def _put_in_tile(node: LoopNode, rows: int, columns: int, undo: contextlib.ExitStack) -> None:
    """Have what reduces nothing go over a tile by row and column, until `undo` is closed.

    Inductor gave it the loops of the parts that were. In those of the tile, all that several nodes of a kernel compute
    is seen to be the same, and is computed once.
    """
    body = inductor.node_body(node)
    sizes = [sympy.Integer(rows), sympy.Integer(columns)]
    if body.sizes[1] or list(body.sizes[0]) == sizes or not tiles.covers_tile(node, rows, columns):
        return
    made = made_once(body, ("in tile", rows, columns), partial(tiles.with_loops, body, rows, columns, sizes, tuple))
    if made is not None:
        set_loop_body(node, made, undo)


def rebuilt(kernel: Kernel, undo: contextlib.ExitStack) -> Kernel:
    """Return a kernel of the same nodes, whose loops are others now; Unsupported where Inductor has none."""
    nodes = inductor.loop_nodes(kernel)
    if len(nodes) == 1:
        return kernel
    undo.callback(codegen.put_back, [kernel])
    made = codegen.fuse_nodes(nodes)
    if made is None:
        detail = "Inductor's codegen cannot run its sums together in other parts"
        raise Unsupported(Reason.not_liftable, f"{kernel.get_name()}: {detail}")
    codegen.put_back([made])
    return made
