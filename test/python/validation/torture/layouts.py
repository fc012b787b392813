"""Choose the sizes and strides that the tensors of a sample are given."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

#: What a layout does with a tensor; None where it does not apply.
Change = Callable[[torch.Tensor], torch.Tensor]


def _transposed(t: torch.Tensor) -> torch.Tensor:
    return t.transpose(-1, -2).contiguous().transpose(-1, -2) if t.ndim > 1 else t


def _expanded(t: torch.Tensor) -> torch.Tensor:
    return t[:1].expand(t.shape) if t.ndim and t.shape[0] else t


def _expanded_last(t: torch.Tensor) -> torch.Tensor:
    return t[..., :1].expand(t.shape) if t.ndim and t.shape[-1] else t


def _channels_last(t: torch.Tensor) -> torch.Tensor:
    order = [0, *range(2, t.ndim), 1]
    back = [0, t.ndim - 1, *range(1, t.ndim - 1)]
    return t.permute(order).contiguous().permute(back) if t.ndim > 2 else t


def _sliced(t: torch.Tensor) -> torch.Tensor:
    """Return a part of every row of a wider tensor, from the second element on."""
    if not t.ndim:
        return t
    wider = t.new_empty(*t.shape[:-1], t.shape[-1] + 3)
    return wider[..., 1 : 1 + t.shape[-1]].copy_(t)


def _every_other(t: torch.Tensor) -> torch.Tensor:
    return t.new_empty(*t.shape[:-1], 2 * t.shape[-1])[..., ::2].copy_(t) if t.ndim else t


STRIDES: dict[str, Change] = {
    "contiguous": lambda t: t,
    "transposed": _transposed,
    "expanded": _expanded,
    "expanded-last": _expanded_last,
    "channels-last": _channels_last,
    "sliced": _sliced,
    "every-other": _every_other,
}


def _gaps(t: torch.Tensor) -> torch.Tensor:
    """Return a tensor with elements between the indices of its first dimension that are no row of the others."""
    if t.ndim < 2 or not t.numel():
        return t
    inner = t[0].numel()
    return t.new_empty(t.shape[0], inner + 8)[:, :inner].unflatten(1, t.shape[1:]).copy_(t)


#: The first dimension of every tensor is a symbol to the compiler.
SYMBOLIC = "symbolic"

#: What a name may say of strides too; the table has none of these.
MORE_STRIDES: dict[str, Change] = {**STRIDES, "gaps": _gaps}

#: Shapes by number of dimensions, from one on.
SIZES: dict[str, tuple[tuple[int, ...], ...]] = {
    "one-row": ((64,), (1, 64), (1, 1, 48), (1, 1, 1, 64), (1, 1, 1, 1, 32)),
    "odd": ((45,), (6, 45), (3, 4, 33), (2, 3, 4, 35), (2, 1, 3, 2, 15)),
    "prime": ((31,), (7, 67), (3, 5, 37), (2, 3, 5, 31), (2, 1, 3, 5, 17)),
    "wide": ((300,), (4, 160), (2, 3, 96), (2, 2, 3, 64), (2, 1, 2, 2, 48)),
    "empty": ((0,), (0, 8), (2, 0, 6), (1, 0, 3, 4), (1, 0, 2, 2, 4)),
}

#: What a name may say. Strides are of the sample's own sizes where a row is too short to be cut, and of wide rows else.
LAYOUTS = (*STRIDES, *SIZES, *(f"wide+{name}" for name in STRIDES if name != "contiguous"))


def _refilled(t: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Return the tensor's own values, repeated over another shape: all are of its operator's domain."""
    count = math.prod(shape)
    flat = t.reshape(-1)
    if not flat.numel():
        return t.new_zeros(shape)
    return flat.repeat(-(-count // flat.numel()))[:count].reshape(shape).clone()


def resized(tensors: list[torch.Tensor], first: torch.Tensor, layout: str) -> list[torch.Tensor]:
    """Return all tensors of the first one's shape in that of the layout; the others as they are."""
    size = layout.split("+", maxsplit=1)[0]
    if size not in SIZES or not 0 < first.ndim <= len(SIZES[size]):
        return tensors
    shape = SIZES[size][first.ndim - 1]
    return [_refilled(t, shape) if t.shape == first.shape else t for t in tensors]


def restrided(tensors: list[torch.Tensor], layout: str) -> list[torch.Tensor]:
    named = [part for part in layout.split("+") if part in MORE_STRIDES]
    change = MORE_STRIDES[named[-1] if named else "contiguous"]
    return [change(t) for t in tensors]


def with_symbols(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return the tensors, of which the compiler does not know the first dimension; a size of one it may look at."""
    for t in tensors:
        if t.ndim:
            torch._dynamo.maybe_mark_dynamic(t, 0)
    return tensors


def same_layout(t: torch.Tensor, dtype: torch.dtype | None = None, device: str = "cpu") -> torch.Tensor:
    """Return a copy with the same strides, gaps and overlaps too; a type for those that are not integers."""
    dtype = t.dtype if dtype is None else dtype
    if not t.numel():
        return torch.empty_strided(t.shape, t.stride(), dtype=dtype, device=device)
    extent = 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True))
    offset = t.storage_offset()
    whole = t.as_strided((offset + extent,), (1,), 0).detach().to(dtype=dtype, device=device, copy=True)
    return whole.as_strided(t.shape, t.stride(), offset)
