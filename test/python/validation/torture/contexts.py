"""Hold what is around an operator in a program: norms, parts of rows, concatenations, and who else reads its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

Operator = Callable[[torch.Tensor], list[torch.Tensor]]
Context = Callable[[Operator, torch.Tensor, int], list[torch.Tensor]]


def norm(t: torch.Tensor, kind: int = 0) -> torch.Tensor:
    """Compute a reduction of each row that keeps the type; a number is made a row first."""
    t = t.unsqueeze(0).expand(8) if t.ndim == 0 else t
    if t.dtype == torch.bool:
        return t ^ t.any(-1, keepdim=True)
    if t.is_complex():
        return t / (1 + t.abs().sum(-1, keepdim=True))
    if not t.is_floating_point():
        return t - t.amax(-1, keepdim=True)
    return _NORMS[kind % len(_NORMS)](t if t.dtype not in _NARROW else t.to(torch.float16))


_NARROW = (torch.float8_e4m3fn, torch.float8_e5m2)


def _wide(t: torch.Tensor) -> torch.Tensor:
    return t.float() if t.dtype in (torch.float16, torch.bfloat16) else t


def _rms(t: torch.Tensor) -> torch.Tensor:
    return (_wide(t) * torch.rsqrt(_wide(t).pow(2).mean(-1, keepdim=True) + 1e-3)).to(t.dtype)


_NORMS: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    _rms,
    lambda t: F.layer_norm(t, t.shape[-1:]),
    lambda t: t - t.mean(-1, keepdim=True),
    lambda t: t / (1 + t.abs().amax(-1, keepdim=True)),
    lambda t: torch.softmax(t, -1),
)


def halves(t: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the halves that `chunk` makes; the last element of an odd row is in none."""
    half = t.shape[-1] // 2
    return (t, t) if half == 0 else (t[..., :half], t[..., half : 2 * half])


def gate(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if a.dtype == torch.bool:
        return a & b
    return a * torch.sigmoid(b) if a.is_floating_point() else a * b


def negated(t: torch.Tensor) -> torch.Tensor:
    return ~t if t.dtype == torch.bool else -t


def _after_norm(op: Operator, x: torch.Tensor, kind: int) -> list[torch.Tensor]:
    return op(norm(x, kind))


def _before_norm(op: Operator, x: torch.Tensor, kind: int) -> list[torch.Tensor]:
    first, *rest = op(x)
    return [norm(first, kind), *rest]


def _between_reductions(op: Operator, x: torch.Tensor, kind: int) -> list[torch.Tensor]:
    first, *rest = op(norm(x, kind))
    return [norm(first, kind + 1), *rest]


def _chunk(op: Operator, x: torch.Tensor, kind: int) -> list[torch.Tensor]:
    return [gate(*halves(norm(op(x)[0], kind)))]


def _norm_chunk(op: Operator, x: torch.Tensor, kind: int) -> list[torch.Tensor]:
    return [gate(*halves(_row(op(norm(x, kind))[0])))]


def _row(t: torch.Tensor) -> torch.Tensor:
    return t.unsqueeze(0) if t.ndim == 0 else t


def _stack(op: Operator, x: torch.Tensor, kind: int) -> list[torch.Tensor]:
    row = norm(op(x)[0], kind)
    row = row[..., : row.shape[-1] // 2 * 2]
    return [torch.stack([negated(row[..., 1::2]), row[..., ::2]], -1).flatten(-2)]


def _cat(op: Operator, x: torch.Tensor, kind: int) -> list[torch.Tensor]:
    first, second = halves(_row(op(norm(x, kind))[0]))
    return [torch.cat([negated(second), first], -1)]


def _pad(op: Operator, x: torch.Tensor, kind: int) -> list[torch.Tensor]:
    return [F.pad(norm(op(x)[0], kind), (1, 2))]


def _strided_store(op: Operator, x: torch.Tensor, kind: int) -> list[torch.Tensor]:
    row = norm(op(x)[0], kind)
    out = row.new_zeros(*row.shape[:-1], 2 * row.shape[-1])
    out[..., ::2] = row
    return [out]


def _second_consumer(op: Operator, x: torch.Tensor, kind: int) -> list[torch.Tensor]:
    row = norm(op(x)[0], kind)
    return [gate(*halves(row)), row.sum(0) if row.dtype != torch.bool else row.any(0)]


def _live_out(op: Operator, x: torch.Tensor, kind: int) -> list[torch.Tensor]:
    row = _row(op(norm(x, kind))[0])
    return [gate(*halves(row)), row]


CONTEXTS: dict[str, Context] = {
    "after-norm": _after_norm,
    "before-norm": _before_norm,
    "between": _between_reductions,
    "chunk": _chunk,
    "norm-chunk": _norm_chunk,
    "stack": _stack,
    "cat": _cat,
    "pad": _pad,
    "strided": _strided_store,
    "consumers": _second_consumer,
    "live-out": _live_out,
}


def _extremum(op: Operator, x: torch.Tensor, kind: int) -> list[torch.Tensor]:
    row = _row(norm(op(x)[0], kind))
    return [gate(*halves(row)), row.argmax(-1) if row.dtype != torch.bool else row.any(-1)]


def _pooled(op: Operator, x: torch.Tensor, kind: int) -> list[torch.Tensor]:
    """Compute a part of a sum over rows, as of a head that reads some features of a pooled sequence."""
    rows = _row(op(x)[0])
    return [norm(halves(_row(rows.any(0) if rows.dtype == torch.bool else rows.sum(0)))[1], kind)]


def _padded_rows(op: Operator, x: torch.Tensor, kind: int) -> list[torch.Tensor]:
    """Pad each row before its norm, and add rows around all of them after it."""
    return [F.pad(norm(F.pad(op(x)[0], (1, 2)), kind), (0, 0, 1, 1))]


def _windows(op: Operator, x: torch.Tensor, kind: int) -> list[torch.Tensor]:
    """Return pairs of rows, as windows of an image, the last completed by a row of zeros; columns come first."""
    rows = norm(op(x)[0], kind)
    pairs = F.pad(rows, (0, 0, 0, -rows.shape[-2] % 2)).unflatten(-2, (-1, 2))
    return [pairs.transpose(-2, -3).contiguous()]


def _frames(op: Operator, x: torch.Tensor, kind: int) -> list[torch.Tensor]:
    """Return frames of a signal: each has a row and the next one, so that every row is in two."""
    row = _row(op(norm(x, kind))[0])
    width = row.shape[-1]
    return [negated(F.pad(row.flatten(), (0, width)).unfold(0, 2 * width, width)), row]


def _turned(op: Operator, x: torch.Tensor, kind: int) -> list[torch.Tensor]:
    """Gate each row by itself, turned by as many elements as there are rows."""
    row = _row(op(norm(x, kind))[0])
    return [gate(row, row.roll(row.shape[0], -1))]


#: Contexts that a program may name too. The table does not have them: its programs keep their layouts and samples.
MORE_CONTEXTS: dict[str, Context] = {
    **CONTEXTS,
    "extremum": _extremum,
    "pooled": _pooled,
    "padded-rows": _padded_rows,
    "windows": _windows,
    "frames": _frames,
    "turned": _turned,
}

#: Options of Bridge that a program may name after its context, as in "chunk+looped"; the table has none of them.
OPTIONS: dict[str, dict[str, Any]] = {"looped": {"persistent": False}}


def context_and_options(name: str) -> tuple[str, dict[str, Any]]:
    """Return a context's name, and the options that are named after it."""
    context, *options = name.split("+")
    return context, {key: value for option in options for key, value in OPTIONS[option].items()}
