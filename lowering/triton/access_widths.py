"""Choose how many elements of a row each thread loads side by side, where loads of one tile differ in that.

Triton gives each thread of a tile as many elements side by side as the best aligned of all its loads allows in one
access. Another, whose rows begin at addresses that allow fewer, is then several accesses of each thread, at addresses
that are far from the next thread's; and what is stored changes threads on its way, through shared memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import sympy

from ...inductor.layouts import buffer_dtype
from .kept_rows import KeptRowsMixin
from .profitability import MOSTLY_FILLED, power_of_2

if TYPE_CHECKING:  # Importing this loads no Inductor.
    from torch._inductor.codegen.common import CSEVariable, IndentedBuffer
    from torch._inductor.codegen.triton import IndexingOptions

#: Bytes of the widest access of a thread, and those that each thread of a warp moves at a time: of 32, a line of cache.
WIDEST_ACCESS, BYTES_AT_A_TIME = 16, 4

#: How many times less the chosen accesses take, at least. On an H200 (docs/results.md, "Loads that are not aligned
#: alike") 2.5 times less were 13 to 20% of a kernel, 1.8 times 2%, and nothing where memory bounds it.
LEAST_GAIN = 1.5

#: Warps of a launch that kernels share, at most: those of a part alone may be fewer.
SHARED_WARPS = 16


class Access(NamedTuple):
    """Describe what loads elements of a row side by side: bytes of each; how many of them one access may have."""

    size: int
    elements: int


def elements_of_thread(accesses: Sequence[Access]) -> int:
    """Return how many elements a thread should have side by side; as many as Triton's, where fewer gain too little."""
    most = max(access.elements for access in accesses)
    choices = [1 << power for power in range(most.bit_length())]
    wide = [n for n in choices if all(n >= one.elements or n * one.size >= BYTES_AT_A_TIME for one in accesses)]
    best = min(reversed(wide), key=lambda elements: _taken(accesses, elements))
    return best if _taken(accesses, most) >= LEAST_GAIN * _taken(accesses, best) else most


def _taken(accesses: Iterable[Access], elements: int) -> float:
    """Return what loading an element by each access takes of a multiprocessor, if threads have so many side by side.

    In lines of cache for a warp: of an access whose threads are further apart than what each moves, it is more lines.
    """
    return sum(max(1.0, elements * one.size / BYTES_AT_A_TIME) / min(one.elements, elements) for one in accesses)


def leaves_warps_idle(elements: int, length: int, warps: int) -> bool:
    """Return True if more than a third of the warps among which Triton divides a row's lanes have none with an element.

    elements: of a thread, side by side. Rows of 130 elements took 36 us in four warps with 8 elements a thread on an
    H200, and 70 with two.
    """
    lanes_of_warp = 32 * elements
    along = min(warps, power_of_2(length) // lanes_of_warp)
    return along > 1 and length < MOSTLY_FILLED * along * lanes_of_warp


class _Load(NamedTuple):
    """Hold a load: its pointer in Triton, and what it is."""

    pointer: str
    access: Access


class AccessWidthMixin(KeptRowsMixin):
    """Have threads load no more elements side by side than is good for all loads of a tile, in kernels of Bridge's."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.bridge_loading = ""
        self.bridge_loads: set[_Load] = set()

    def load(self, name: str, index: sympy.Expr) -> CSEVariable:
        """Return the variable of an element that is loaded."""
        self.bridge_loading = name
        try:
            return super().load(name, index)
        finally:
            self.bridge_loading = ""

    def get_load_buffer(self, indexing: IndexingOptions) -> IndentedBuffer:
        """Return the lines that a load is added to; note it."""
        if self.bridge_loading and self.bridge_rows_of_tile() and hasattr(indexing, "index_str"):
            self._note(self.bridge_loading, indexing)
        return super().get_load_buffer(indexing)

    def _note(self, name: str, indexing: IndexingOptions) -> None:
        """Note a load that has elements of the tile's rows side by side; parameters have a tile of their own."""
        trees = [tree.is_reduction for tree in self.range_trees if set(tree.var_list) & indexing.index.free_symbols]
        if not any(trees) or (all(trees) and self.bridge_rows_of_tile() > 1):
            return
        elements = self._side_by_side(indexing.index, WIDEST_ACCESS // buffer_dtype(name).itemsize)
        if elements:
            pointer = f"{self.args.input(name)} + ({indexing.index_str})"
            self.bridge_loads.add(_Load(pointer, Access(buffer_dtype(name).itemsize, elements)))

    def _side_by_side(self, index: sympy.Expr, most: int) -> int:
        """Return how many elements one access may have at an index; 0 where lanes are not side by side."""
        from torch._inductor.virtualized import V

        row = self.bridge_row()
        if row is None or self.is_indirect_indexing(index):
            return 0
        lanes = [one for one in self.bridge_loops(row) if one.divisor == 1 and one.symbol() in index.free_symbols]
        rest = sympy.expand(index - lanes[0].symbol()) if len(lanes) == 1 else index
        if len(lanes) != 1 or lanes[0].symbol() in rest.free_symbols:
            return 0
        multiples = [rest] if lanes[0].length == row.numel else [rest, lanes[0].length]
        known = V.graph.sizevars.statically_known_multiple_of
        while most > 1 and not all(known(number, most) for number in multiples):
            most //= 2
        return most

    def codegen_body(self) -> None:
        """Generate the body, with what Triton is told of its loads."""
        accesses = [load.access for load in self.bridge_loads]
        elements = elements_of_thread(accesses) if accesses else 0
        wider = [load.pointer for load in self.bridge_loads if load.access.elements > elements]
        if wider and not self._leaves_warps_idle(elements):
            for pointer in wider:
                self._limit(pointer, elements)
        super().codegen_body()

    def _leaves_warps_idle(self, elements: int) -> bool:
        """Return True if short rows are better where threads have more elements than so many; others have blocks."""
        row = self.bridge_row()
        if row is None or self.bridge_block is None:
            return False
        warps = SHARED_WARPS if self.is_combo_kernel else self.bridge_block[1]
        return leaves_warps_idle(elements, int(row.numel), warps)

    def _limit(self, pointer: str, elements: int) -> None:
        """Tell Triton that a load has so many elements side by side, and no more."""
        tile = ", ".join([*["1"] * (len(self.dense_size_list()) - 1), str(elements)])
        load, limited = f"tl.load({pointer}, ", f"tl.load(tl.max_contiguous({pointer}, [{tile}]), "
        for lines in (self.body, self.loads, self.compute):
            lines._lines = [_replaced(line, load, limited) for line in lines._lines]


def _replaced(line: Any, old: str, new: str) -> Any:
    """Return a line of code with other text; loads whose eviction policy is chosen when the kernel ends are no text."""
    if isinstance(line, str):
        return line.replace(old, new)
    if old in getattr(line, "line", ""):
        line.line = line.line.replace(old, new)
    return line
