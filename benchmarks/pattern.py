"""What the benchmarks and tests know of a function: its inputs, and how many kernels are expected of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

#: Stands for the number of rows in a shape.
ROWS = -1


@dataclass(frozen=True)
class Sizes:
    """Shapes of a function's inputs, `ROWS` for as many rows as wanted, `rows` of them unless told."""

    rows: int
    shapes: tuple[tuple[int, ...], ...]

    def make(self, rows: int | None, dtype: torch.dtype, device: str) -> list[torch.Tensor]:
        """Return normally distributed inputs; drawn in float32, so that a seed gives the same draw for every dtype."""
        rows = self.rows if rows is None else rows
        shapes = [[rows if size == ROWS else size for size in shape] for shape in self.shapes]
        return [torch.randn(shape, device=device, dtype=torch.float32).to(dtype) for shape in shapes]


@dataclass(frozen=True)
class Pattern:
    """A function and what is expected of it.

    inductor: kernels of Inductor in torch 2.11 (newer ones may fuse more by themselves); bridge: kernels that Bridge
    is to make of it; reached: those that it makes at present; dynamic: whether rows may be symbolic; loads_once:
    whether no program of the fused kernel loads an element of an input twice.
    """

    name: str
    function: Callable
    full: Sizes
    small: Sizes
    inductor: int
    bridge: int
    reached: int
    dynamic: bool = True
    loads_once: bool = False

    def make(self, rows: int | None, dtype: torch.dtype, device: str, small: bool = False) -> list[torch.Tensor]:
        """Return inputs at the full or the small size; rows: None for the default."""
        return (self.small if small else self.full).make(rows, dtype, device)

    def mark_dynamic_rows(self, inputs: list[torch.Tensor]) -> None:
        """Has Dynamo make the rows of such inputs symbolic."""
        for tensor, shape in zip(inputs, self.full.shapes, strict=True):
            if shape[0] == ROWS:
                torch._dynamo.mark_dynamic(tensor, 0)

    def traffic(self, inputs: list[torch.Tensor]) -> int:
        """Return the fewest bytes moved: every element of inputs and outputs once."""
        outputs = self.function(*[t.to("meta") for t in inputs])
        outputs = outputs if isinstance(outputs, (tuple, list)) else [outputs]
        return sum(t.numel() * t.element_size() for t in [*inputs, *outputs])


def sizes(rows: int, *shapes: tuple[int, ...]) -> Sizes:
    return Sizes(rows, shapes)
