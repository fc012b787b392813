"""Tell the dtype, the layout and the size of a buffer of Inductor's graph, by its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
import torch

from .sizes import size_hint

#: Types of sizes that are no symbols.
NUMBERS = (int, sympy.Integer)


def buffer_dtype(name: str) -> torch.dtype:
    """Return the dtype of a buffer's elements."""
    from torch._inductor.virtualized import V

    return V.graph.get_dtype(name)


def laid_out_as(name: str) -> str:
    """Return the buffer whose layout a buffer has: of what a call has overwritten, the one that it overwrites."""
    from torch._inductor.virtualized import V

    return name if _has_layout(name) else V.graph.scheduler.mutation_real_name.get(name, name)


def _has_layout(name: str) -> bool:
    """Return False for several results in one, and for none: of new contents, of sizes, of checks."""
    from torch._inductor import ir
    from torch._inductor.virtualized import V

    layout = getattr(V.graph.name_to_buffer.get(name), "layout", None)
    return layout is None or isinstance(layout, ir.Layout)


def holds_elements(name: str) -> bool:
    """Return False for what is not one tensor: a size that a call finds, all results of a call."""
    return _has_layout(laid_out_as(name))


def layout_of(name: str) -> tuple[Sequence[Any], Sequence[Any], Any]:
    """Return (sizes, strides, offset) of a buffer."""
    from torch._inductor.virtualized import V

    name = laid_out_as(name)
    if name in V.graph.constants:
        value = V.graph.constants[name]
        return value.size(), value.stride(), value.storage_offset()
    layout = V.graph.get_buffer(name).get_layout()
    if hasattr(layout, "real_layout"):  # of what is written through a view: the sizes are the view's
        layout = layout.real_layout()
    return layout.size, layout.stride, layout.offset


def buffer_numel(name: str) -> sympy.Expr:
    """Return the number of elements of a buffer's storage that its layout reaches, from the storage's first."""
    size, stride, offset = layout_of(name)
    if all(isinstance(number, NUMBERS) for number in (*size, *stride, offset)):
        return sympy.Integer(offset + 1 + sum((int(n) - 1) * int(s) for n, s in zip(size, stride, strict=True)))
    reach = sum(((n - 1) * s for n, s in zip(size, stride, strict=True)), sympy.Integer(0))
    return sympy.expand(sympy.sympify(offset + reach + 1))


def buffer_bytes(name: str) -> int:
    """Return the bytes of a buffer's storage that its layout reaches, for typical sizes."""
    return size_hint(buffer_numel(name)) * buffer_dtype(name).itemsize
