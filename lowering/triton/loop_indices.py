"""Write one index in one form: the loops of the tile, where a node has it in quotients of another node's loop.

Nodes of a fused kernel may have the same row as one loop and as two. Inductor knows that two loads are one, and that
what is computed of them is one value, where their indices are written alike.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import sympy

from .kept_rows import KeptRowsMixin

if TYPE_CHECKING:  # Importing this loads no Inductor.
    from torch._inductor.codegen.common import CSEVariable
    from torch._inductor.codegen.simd import IterationRangesEntry


class LoopIndexMixin(KeptRowsMixin):
    """Replace quotients and remainders of a loop by loops of the same tree, in kernels that Bridge fused."""

    def load(self, name: str, index: sympy.Expr) -> CSEVariable:
        """Return the variable of an element that is loaded; its policy of caching depends on its index, too."""
        return super().load(name, self._in_loops(index) if self.bridge_fused else index)

    def prepare_indexing(self, index: sympy.Expr) -> sympy.Expr:
        """Return an index as the code has it."""
        return super().prepare_indexing(self._in_loops(index) if self.bridge_fused else index)

    def _in_loops(self, index: sympy.Expr) -> sympy.Expr:
        """Return an index without quotients and remainders of one loop that are loops themselves.

        It stays where a loop would be in it beside its own quotient, as in the index of a roll: Inductor simplifies an
        index whose loops are dimensions of one tile.
        """
        from torch.utils._sympy.functions import FloorDiv, ModularIndexing

        parts = {part: self._loop(part) for part in index.atoms(FloorDiv, ModularIndexing)}
        written = index.xreplace({part: loop for part, loop in parts.items() if loop is not None})
        return written if self._are_dimensions(written) else index

    def _are_dimensions(self, index: sympy.Expr) -> bool:
        """Say whether no loop of an index goes over a part of what another loop of the same tree goes over."""
        entries = [self.range_tree_nodes[symbol] for symbol in index.free_symbols if symbol in self.range_tree_nodes]
        return all(one.root is not other.root or _are_apart(one, other) for one, other in combinations(entries, 2))

    def _loop(self, part: sympy.Expr) -> sympy.Symbol | None:
        """Return the loop that a quotient or a remainder is; None where it is none of a loop, or does not divide it."""
        from torch.utils._sympy.functions import FloorDiv

        loop, divisor, *modulus = part.args
        entry = self.range_tree_nodes.get(loop)
        if entry is None:
            return None
        length = modulus[0] if modulus else FloorDiv(entry.length, divisor)
        if not _divides(divisor * length, entry.length):
            return None
        return entry.root.lookup(entry.divisor * divisor, length).symbol()


def _are_apart(one: IterationRangesEntry, other: IterationRangesEntry) -> bool:
    """Say whether one of two loops is known to step over all of the other."""
    pairs = ((one, other), (other, one))
    return any(_divides(inner.divisor * inner.length, outer.divisor) for inner, outer in pairs)


def _divides(divisor: sympy.Expr, length: sympy.Expr) -> bool:
    """Say whether a loop's length is known to be a multiple of a number."""
    from torch._inductor.virtualized import V

    return V.graph.sizevars.statically_known_multiple_of(length, divisor)
