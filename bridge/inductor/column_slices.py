"""Kernels over a tile that reduce no row: each program has some rows and a slice of their columns.

Lanes are as many as a power of two. A row of 3072 columns in 4096 lanes leaves a fourth of them idle, three slices of
1024 leave none, and there are three times as many programs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

import sympy

from ..reasons import Reason, Unsupported
from . import tiles
from .loops import made_once, set_loop_body
from .protocols import LoopBody, LoopNode
from .schedule import node_body
from .sizes import Extent, divided_up

#: Columns of a slice: at least 512 bytes of 16-bit elements, and at most as many as four warps have.
NARROWEST, WIDEST = 256, 1024


@dataclass(frozen=True)
class Slices:
    """Describe a tile of `rows` and `columns` in blocks of `block` rows by `width` columns, which divide the columns.

    The loops go over whole blocks: of the rows that the last one has beyond the tile's, nothing may be accessed.
    """

    rows: Extent
    columns: int
    block: int
    width: int

    @property
    def sizes(self) -> tuple[Extent, int, int, int]:
        """Return the extents of loops over blocks of rows, slices, rows of a block and columns of a slice."""
        return divided_up(self.rows, self.block), self.columns // self.width, self.block, self.width


def slices_of_row(columns: int) -> int:
    """Return in how many slices of a power of two a row may be; 1 where they would be too narrow, or it is one."""
    width = min(columns & -columns, WIDEST)
    return columns // width if width >= NARROWEST else 1


def put_in_slices(node: LoopNode, slices: Slices, undo: contextlib.ExitStack) -> None:
    """Have a node go over the rows of a slice one after the other, as those of a longer tile, until `undo` is closed.

    Each block of rows has its slices one after the other.
    Unsupported, with nothing changed, for a node that is not over the whole tile, or that Inductor cannot split so.
    """
    body = node_body(node)
    covers = tiles.covers_tile(node, slices.rows, slices.columns) and not body.sizes[1]
    sliced = made_once(body, ("in slices", slices), partial(_in_slices, body, slices)) if covers else None
    rows = sympy.sympify(prod(slices.sizes[:3]))
    if sliced is None or not tiles.splits_into(sliced, (rows, sympy.Integer(slices.width))):
        raise Unsupported(Reason.extents_do_not_agree, f"{node.get_name()}: not over slices of {slices.width} columns")
    set_loop_body(node, sliced, undo)


def _in_slices(body: LoopBody, slices: Slices) -> LoopBody | None:
    """Return loops over a tile that go over it slice by slice; None where their order is not known."""

    def place(indices: Sequence[sympy.Symbol]) -> tuple[sympy.Expr, sympy.Expr]:
        block, part, row, column = indices
        return block * slices.block + row, part * slices.width + column

    return tiles.with_loops(body, slices.rows, slices.columns, list(map(sympy.sympify, slices.sizes)), place)
