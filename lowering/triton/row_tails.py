"""Two stores that make a row together: its first lanes hold one value, some after them another that all lanes share.

Inductor lowers the padding of rows at their end to two buffers in one: rows of 49 elements, and seven zeros after each.
Stored apart, neither has vectors; the row of 56 that they are has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy

from ...affine import ops_table
from ...inductor.layouts import buffer_dtype
from ...inductor.schedule import offset_in_storage, written_storage
from .kept_rows import KeptRowsMixin

if TYPE_CHECKING:  # Importing this loads no Inductor.
    from torch._inductor.codegen.common import CSEVariable


@dataclass(frozen=True, eq=False)
class RowPart:
    """Hold a store of the first lanes of a row; lanes: how many; shared: one value for all of them; line: its own."""

    name: str
    index: sympy.Expr
    value: CSEVariable
    lanes: int
    shared: bool
    line: object


class RowTailMixin(KeptRowsMixin):
    """Store at once the parts of a row that follow each other in memory.

    Of a kernel that keeps the rows: their lanes are a power of two, so there are some for the second part.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        #: The last one of each memory.
        self.bridge_parts: dict[str, RowPart] = {}

    def reduction(self, dtype: object, src_dtype: object, reduction_type: str, value: object) -> object:
        """Return the value of a reduction; one that is guarded knows in how many lanes it is stored."""
        result = super().reduction(dtype, src_dtype, reduction_type, value)
        kind, _, lanes = reduction_type.partition(":")
        if kind == ops_table.GUARDED and lanes:
            result.bridge_lanes = tuple(map(int, lanes.split(":")))
        return result

    def store(self, name: str, index: sympy.Expr, value: CSEVariable, mode: str | None = None) -> None:
        """Store a value, together with what was stored just before or after it in memory."""
        lines, value = self.stores._lines, self.bridge_stored(value)
        before, memory = len(lines), written_storage(name)
        super().store(name, index, value, mode)
        other = self.bridge_parts.pop(memory, None)
        lanes = None if mode or len(lines) != before + 1 else self._part_lanes(name, index, value)
        if lanes is None:
            return
        guarded = hasattr(value, "bridge_lanes")
        mine = RowPart(name, index, value, lanes, guarded and is_shared(value), lines[-1])
        if other is not None and other.line is lines[before - 1] and self._store_row(other, mine):
            return
        if not guarded or mine.shared:
            self.bridge_parts[memory] = mine

    def _part_lanes(self, name: str, index: sympy.Expr, value: CSEVariable) -> int | None:
        """Return how many first lanes of a row a store goes to, one element after the other; None where it does not."""
        if not self.bridge_keeps_rows() or self._load_mask is not None:
            return None
        row = self.bridge_row()
        if row is None or not row.numel.is_Integer or self.is_indirect_indexing(index):
            return None
        whole = [loop.symbol() for loop in self.bridge_loops(row) if loop.divisor == 1 and loop.length == row.numel]
        if len(whole) != 1 or sympy.diff(index, whole[0]) != 1 or not buffer_dtype(name).itemsize > 1:
            return None
        lanes, numel = getattr(value, "bridge_lanes", (int(row.numel),) * 2)
        return lanes if numel == row.numel else None

    def _store_row(self, one: RowPart, other: RowPart) -> bool:
        """Store two parts at once, if one follows the other; they were stored last, one after the other."""
        first, second = sorted((one, other), key=lambda part: part.shared)
        apart = _address(second) - _address(first)
        lanes = first.lanes + second.lanes
        row = next(tree for tree in self.range_trees if tree.is_reduction)
        if first.shared or not second.shared or sympy.expand(apart) != first.lanes:
            return False
        if buffer_dtype(first.name) != buffer_dtype(second.name) or lanes > self._get_persistent_RBLOCK(row.numel):
            return False
        del self.stores._lines[-2:]
        self._store_joined(first, second, row.name, f"{row.prefix}mask", lanes)
        return True

    def _store_joined(self, first: RowPart, second: RowPart, lane: str, row_mask: str, lanes: int) -> None:
        """Store a part's value in its lanes, and another's in those after them.

        lane, row_mask: the variables that count a row's lanes, and that tell which of them have an element.
        """
        from torch._inductor.codegen.common import DeferredLine
        from torch._inductor.codegen.triton import triton_store_type

        indexing = self.indexing(first.index, dense_indexing=True)
        masks = {str(mask) for mask in indexing.mask_vars} - {row_mask} | {f"({lane} < {lanes})"}
        dense, kind = self.dense_size_str(), triton_store_type(buffer_dtype(first.name))
        values = [f"tl.broadcast_to({part.value}, {dense}).to({kind})" for part in (first, second)]
        both = f"tl.where({lane} < {first.lanes}, {', '.join(values)})"
        line = f"tl.store({self.args.output(first.name)} + ({indexing.index_str}), {both}, {' & '.join(sorted(masks))})"
        self.stores.writeline(DeferredLine(first.name, line))


def _address(part: RowPart) -> sympy.Expr:
    """Return the address of a part's first element in memory, by its kernel's variables."""
    return part.index + offset_in_storage(part.name)


def is_shared(value: CSEVariable) -> bool:
    """Return True if all lanes of a row have the same value."""
    shape = value.shape
    return shape is not None and (len(shape) == 0 or str(shape[-1]) == "1")
