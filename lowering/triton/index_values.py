"""Numbers of places in loops that a kernel computes with: what is loaded by them has the masks of these loops.

From torch 2.13 on, Inductor forgets the masks of an index that is no loop alone, as that of the second half of a row,
where a number of another type than the kernel's indices is made of it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import sympy
import torch

if TYPE_CHECKING:  # Importing this loads no Inductor.
    from torch._inductor.codegen.common import CSEVariable


class _MaskedValues:
    """Note the masks of an index's loops beside the number that is made of it."""

    @classmethod
    def value_expr(cls, expr: sympy.Expr, dtype: torch.dtype) -> CSEVariable:
        """Return the variable of an index as a number; as with a loop alone, Inductor adds the masks by its symbol."""
        value: CSEVariable = super().value_expr(expr, dtype)  # type: ignore[misc]
        value.update_on_args("value_expr", tuple(sorted(expr.free_symbols, key=str)), {})
        return value


@functools.cache
def masking_values(overrides: type) -> type:
    """Return Inductor's code for operations (`overrides`), whose numbers of indices have the masks of their loops."""
    return type(overrides.__name__, (_MaskedValues, overrides), {})
