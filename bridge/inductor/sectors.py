"""Tell what kernels access far apart in memory, and how many bytes they move around it.

Those without reductions have tiles as Inductor has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import NamedTuple

import sympy

from .layouts import buffer_dtype
from .protocols import Kernel, LoopNode
from .schedule import SECTOR, STORED_APART, loop_nodes, node_body, node_sizes, stays_inside
from .sizes import size_hint, step_along


class Access(NamedTuple):
    """Say where loops access a buffer.

    steps: of the address in elements, by how many iterations of all loops one iteration of a loop is; elements: that
    are accessed; itemsize: bytes of one; stores: whether it stores.
    """

    buffer: str
    stores: bool
    steps: tuple[tuple[int, int], ...]
    first: sympy.Expr
    elements: int
    itemsize: int

    @property
    def of_sector(self) -> int:
        """Return how many elements the memory gives at a time."""
        return SECTOR // self.itemsize

    @property
    def beside(self) -> int:
        """Return the bytes around all elements where each is alone in its sector.

        What others store into the sector at about the same time goes to memory with it.
        """
        moved = min(SECTOR, STORED_APART * self.itemsize) if self.stores else SECTOR
        return self.elements * (moved - self.itemsize)

    @property
    def in_parts(self) -> int:
        """Return the bytes that are moved again where others store what is between elements of one sector.

        Each of them has a part of every sector. On an H100 three stores of every third element, 50 MB in all, took 53
        us and side by side 26, of four 68 and 25, of six 100 and 23; of 16 bits as of 32. Of two, one store is made.
        """
        step = abs(self.step(1))
        alone = self.stores and 2 < step < self.of_sector and all(abs(step) != 1 for _, step in self.steps)
        return self.elements * self.itemsize * (step - 1) if alone else 0

    def step(self, weight: int) -> int:
        """Return by how much the address grows with so many iterations."""
        known, step = max((one for one in self.steps if one[0] <= weight), default=(1, 0))
        return step * (weight // known)

    def is_far(self, weight: int) -> bool:
        """Return True if elements that are so many iterations apart are in different sectors."""
        return self.step(weight) >= self.of_sector


class RowAccess(NamedTuple):
    """Say by how many elements each loop over rows moves an access, outermost first.

    moved: the bytes of what it accesses.
    """

    steps: tuple[int, ...]
    moved: int


def accesses_far_apart(nodes: Iterable[LoopNode], rows: int) -> list[RowAccess]:
    """Return what loops access in steps of a sector or more along their rows, for typical sizes; for cost only.

    Without what only they use.  rows: how many outer loops of each node go over rows.
    """
    own = list(nodes)
    names = {node.get_name() for node in own}
    found: dict[Access, None] = {}
    for node in own:
        for access in _accesses_of(node):
            if len(access.steps) > rows and access.is_far(1) and not stays_inside(node.scheduler, access.buffer, names):
                found[access] = None
    return [
        RowAccess(tuple(step for _, step in reversed(one.steps[-rows:])), one.elements * one.itemsize) for one in found
    ]


def reduces_across_rows(kernel: Kernel) -> bool:
    """Return True if a kernel steps along its rows over what is in other rows, and needs blocks of many.

    As it does over scores of attention that has those of all heads behind each other.
    """
    names = kernel.get_operation_names()
    for node in loop_nodes(kernel):
        rows = len(node_sizes(node)[0])
        for access in _accesses_of(node) if node_sizes(node)[1] else ():
            steps = [step for _, step in access.steps]
            nearer = any(0 < step < steps[0] for step in steps[len(steps) - rows :])
            if nearer and not access.stores and not stays_inside(node.scheduler, access.buffer, names):
                return True
    return False


def is_far_along_rows(kernel: Kernel) -> bool:
    """Return True if a kernel of reductions steps over a sector or more along its rows, for typical sizes.

    In all that it accesses of more than an element of each row, or than one row.
    """
    iterations = {node: [size_hint(prod(loops)) for loops in node_sizes(node)] for node in loop_nodes(kernel)}
    row = max(reduced for _, reduced in iterations.values())
    rows = max(outer for outer, reduced in iterations.values() if reduced == row)
    names = kernel.get_operation_names()
    return all(
        access.is_far(1) or access.elements <= max(rows, row) or stays_inside(kernel.scheduler, access.buffer, names)
        for node, (outer, reduced) in iterations.items()
        if outer * reduced > rows
        for access in _accesses_of(node)
    )


def bytes_beside_tile(kernel: Kernel) -> int:
    """Return the bytes that a kernel without reductions moves and does not use, for typical sizes; for cost only.

    They are around elements of which a tile has no neighbours. A tile goes along the innermost loop, and along another
    one if something that is far apart along the first is contiguous there: that is when Inductor gives it two
    dimensions. And they are what is stored in parts of sectors.
    """
    accesses = set(_accesses(kernel))
    far = [access for access in accesses if access.is_far(1)]
    others = {weight for access in far for weight, step in access.steps if step == 1}
    beside = min((_beside(far, weight) for weight in others), default=_beside(far, 1))
    return beside + sum(access.in_parts for access in accesses)


def _beside(far: Iterable[Access], weight: int) -> int:
    """Return the bytes around accesses, without those that are near one another along a second loop of a tile."""
    return sum(access.beside for access in far if access.is_far(weight) or not access.step(weight))


def _accesses(kernel: Kernel) -> Iterable[Access]:
    names = kernel.get_operation_names()
    for node in loop_nodes(kernel):
        for access in _accesses_of(node):
            if not stays_inside(kernel.scheduler, access.buffer, names):
                yield access


def _accesses_of(node: LoopNode) -> Iterable[Access]:
    """Yield the loads and stores of a node whose addresses its loops alone decide."""
    from torch._inductor.loop_body import MemoryUsageType

    body = node_body(node)
    extents = (*body.sizes[0], *body.sizes[1])
    sizes = dict(zip((*body.iter_vars, *body.reduce_vars), map(size_hint, extents), strict=True))
    kinds = (MemoryUsageType.LOAD, MemoryUsageType.STORE)
    entries = [(kind, entry) for kind in kinds for entry in body.memory_usage.get(kind, ())]
    for kind, entry in entries:
        index = sympy.expand(sympy.sympify(body.indexing_exprs[entry.index_name]))
        if entry.mode is None and not set(body.indirect_vars) & index.free_symbols:
            yield _access(entry.buffer_name, kind is MemoryUsageType.STORE, index, sizes)


def _access(buffer: str, stores: bool, index: sympy.Expr, sizes: Mapping[sympy.Symbol, int]) -> Access:
    weight, elements, steps = 1, 1, []
    for variable, size in reversed([*sizes.items()]):
        step = step_along(index, variable, sizes.keys())
        steps.append((weight, step))
        elements *= size if step else 1
        weight *= size
    first = index.subs(dict.fromkeys(sizes, 0))
    return Access(buffer, stores, tuple(steps), first, elements, buffer_dtype(buffer).itemsize)
