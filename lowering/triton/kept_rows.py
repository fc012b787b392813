"""Say which of Inductor's kernels are Bridge's, and what it has decided about their rows: the base of all mixins."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # Importing this loads no Inductor.
    from torch._inductor.codegen.simd import IterationRangesEntry, IterationRangesRoot
    from torch._inductor.codegen.triton import TritonKernel
else:
    TritonKernel = object


class KeptRowsMixin(TritonKernel):
    """Hold what Bridge decided about a kernel's rows; Inductor's kernels have it, too, and stay as they are."""

    #: Whether it is a kernel of rows that Bridge fused.
    bridge_fused = False

    #: (rows of a block, warps) that Bridge has chosen for the kernel, alone or in a launch with others.
    bridge_block: tuple[int, int] | None = None

    def bridge_rows_of_tile(self) -> int:
        """Return how many rows a tile of a kernel of Bridge's has, at least; 0 for others."""
        if not self.bridge_fused:
            return 0
        return self.bridge_block[0] if self.bridge_block else 1

    def bridge_keeps_rows(self) -> bool:
        """Return True if lanes have a whole row now, in a kernel that Bridge fused."""
        return self.bridge_fused and self.persistent_reduction and self.inside_reduction

    def bridge_row(self) -> IterationRangesRoot | None:
        """Return the dimension of the tile over which is reduced; None where there are several, or none."""
        rows = [tree for tree in self.range_trees if tree.is_reduction]
        return rows[0] if len(rows) == 1 else None

    def bridge_loops(self, row: IterationRangesRoot) -> list[IterationRangesEntry]:
        """Return the loops over a dimension of the tile."""
        return [self.range_tree_nodes[variable] for variable in row.var_list]
