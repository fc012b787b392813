"""Give a kernel the blocks that Bridge has chosen for it, in the place of those that Inductor's runtime would try."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import sympy
import torch

from .profitability import power_of_2

if TYPE_CHECKING:  # Importing this loads no Inductor.
    from torch._inductor.codegen.triton import FixedTritonConfig


def has_free_blocks(tiling: Mapping[str, object]) -> bool:
    """Return True if a kernel over rows takes the block that it is given: nobody has asked to try several."""
    from torch._inductor import config

    triton = config.triton
    tuned = config.max_autotune or config.max_autotune_pointwise or config.coordinate_descent_tuning
    special = triton.cooperative_reductions or triton.force_cooperative_reductions or triton.multi_kernel
    return "y" not in tiling and not tuned and not special and torch.version.hip is None


class _Blocks(dict):
    """Hold a fixed configuration of a kernel that keeps rows: Inductor may ask for a row's block, without a choice."""

    def __init__(self, chosen: dict[str, int], tiling: Mapping[str, sympy.Expr]) -> None:
        super().__init__(chosen)
        self._tiling = tiling

    def __missing__(self, name: str) -> int:
        """Return the block that Inductor gives a row that is kept whole: its length, rounded up to a power of 2."""
        return power_of_2(self._tiling[name.removesuffix("BLOCK").lower()])


def fixed_block(
    tiling: Mapping[str, sympy.Expr], rows: int, warps: int, at_once: int | None = None
) -> FixedTritonConfig:
    """Return a configuration of so many rows a block, no more than there are; tiling: sizes by prefix.

    at_once: elements of a row that a loop has at a time, None for all. A single row has a block of one: Inductor gives
    its constant indices and values that shape.
    """
    from torch._inductor.codegen.triton import FixedTritonConfig

    there = tiling["x"]
    if isinstance(there, (int, sympy.Integer)):
        rows = min(rows, power_of_2(there))
    along_row = {} if at_once is None else {"R0_BLOCK": at_once}
    return FixedTritonConfig(_Blocks({"XBLOCK": rows, **along_row, "num_warps": warps, "num_stages": 1}, tiling))


def fixed_step(tiling: Mapping[str, sympy.Expr], block: int, step: int, stages: int, warps: int) -> FixedTritonConfig:
    """Return a configuration of a kernel whose programs have `block` rows, and compute `step` of them at a time.

    stages: steps that are on their way at most; tiling: sizes by prefix.
    """
    from torch._inductor.codegen.triton import FixedTritonConfig

    chosen = {"XBLOCK": step, "RSPLIT_SIZE": block, "NUM_STAGES": stages, "num_warps": warps, "num_stages": 1}
    return FixedTritonConfig(_Blocks(chosen, tiling))
