"""Leave a row's own mask out where a guard admits none of the lanes behind the row.

Rows of 1001 elements, of which a guard admits the first 1000, are such, as where a softmax has one more element for a
sink. Triton sees that eight lanes side by side agree about 1000, and not about 1001: with both masks each lane loads
by itself.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import sympy

from .reused_loads import Operands, ReusedLoadMixin

if TYPE_CHECKING:  # Importing this loads no Inductor.
    import torch
    from torch._inductor.codegen.common import CSEVariable


@functools.cache
def noting_bounds(overrides: type) -> type:
    """Return Inductor's code for operations (`overrides`), of which kernels know what is less than what."""
    return type(overrides.__name__, (_Bounds, overrides), {})


class _Bounds:
    """Emit indices as numbers, and comparisons of them, and note both."""

    @classmethod
    def index_expr(cls, expr: sympy.Expr, dtype: torch.dtype) -> CSEVariable:
        """Return the variable of an index as a number."""
        from torch._inductor.virtualized import V

        number: CSEVariable = super().index_expr(expr, dtype)  # type: ignore[misc]
        V.kernel.bridge_numbers[str(number)] = expr
        return number

    @staticmethod
    def lt(one: CSEVariable, other: CSEVariable) -> str:
        """Return code for a comparison."""
        from torch._inductor.virtualized import V

        code = f"{one} < {other}"
        V.kernel.bridge_bounds[code] = one, other
        return code


class RowMaskMixin(ReusedLoadMixin):
    """Leave a row's mask out of accesses under a guard that has it in it, in kernels that Bridge fused."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: By the names of variables: the index of which each is the number.
        self.bridge_numbers: dict[str, sympy.Expr] = {}
        self.bridge_bounds: dict[str, Operands] = {}
        #: Whether the masks of what is accessed now admit no lane behind the row.
        self.bridge_inside_row = False

    @contextlib.contextmanager
    def mask_loads(self, mask: Any, value: Any) -> Iterator[Any]:
        """Have a mask for all that is accessed meanwhile, with those that there are."""
        around = self.bridge_inside_row
        self.bridge_inside_row = around or any(map(self._is_inside, self._parts(mask)))
        try:
            with super().mask_loads(mask, value) as joined:
                yield joined
        finally:
            self.bridge_inside_row = around

    def filter_masks(self, mask_vars: Any) -> None:
        """Take the masks from a set that all lanes have, or that a guard among them has in it."""
        super().filter_masks(mask_vars)
        row = self.bridge_row()
        if self.bridge_inside_row and row is not None and self._load_mask in mask_vars:
            mask_vars.discard(f"{row.prefix}mask")

    def _is_inside(self, mask: CSEVariable) -> bool:
        """Return True if a mask bounds the lanes of a row by a number, behind which there are none of the row."""
        row = self.bridge_row()
        if not self.bridge_fused or row is None or not row.numel.is_Integer:
            return False
        lanes = {loop.symbol() for loop in self.bridge_loops(row) if loop.divisor == 1 and loop.length == row.numel}
        found = self.bridge_operands(mask, self.bridge_bounds)
        if found is None or self.bridge_numbers.get(str(found[0])) not in lanes:
            return False
        bounds = found[1].bounds
        return bounds.is_singleton() and bool(bounds.upper <= row.numel)
