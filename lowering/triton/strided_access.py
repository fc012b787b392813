"""Strided access pairs: where lanes step by two, one access of twice the width serves each element and the next.

A load of every other 16-bit element costs as many instructions and sectors as a load of all of them.  Here is the
arithmetic of it, on Inductor's linear addresses; lowering/triton/kernels.py emits the accesses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import sympy
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

#: Counts the lanes of a wide access: lane l of the row has wide lanes 2 * l and 2 * l + 1.
WIDE_LANE = sympy.Symbol("wide_lane", integer=True, nonnegative=True)


@dataclass(frozen=True)
class LaneVariable:
    """Hold a loop variable in the lanes of a row: symbol = lane // divisor % length, of `lanes` in all."""

    symbol: sympy.Symbol
    divisor: sympy.Expr
    length: sympy.Expr
    lanes: sympy.Expr

    def in_wide_lanes(self, step: int) -> sympy.Expr:
        """Return `step` times the variable, by the wide lane.

        step: 1, or 2 for that of the innermost loop plus the half.
        """
        divisor, length = sympy.sympify(self.divisor * 2 // step), self.length * step
        if self.divisor * self.length == self.lanes:
            return FloorDiv(WIDE_LANE, divisor)
        return ModularIndexing(WIDE_LANE, divisor, length)


@dataclass(frozen=True)
class StridedPair:
    """Hold the wide access that covers an address and the one beside it.

    address: in elements, by WIDE_LANE; half: 0 or 1, which of the two elements was asked for.
    """

    address: sympy.Expr
    half: int


def find_strided_pair(
    address: sympy.Expr, variables: list[LaneVariable], is_even: Callable[[sympy.Expr], bool]
) -> StridedPair | None:
    """Return the pair of an address (in elements) that steps by two from lane to lane; None if it does not.

    is_even: true for an expression that is a multiple of two for all values of its variables.
    """
    used = [v for v in variables if v.symbol in address.free_symbols]
    inner = next((v for v in used if v.divisor == 1), None)
    if inner is None:
        return None
    rest = sympy.expand(address - 2 * inner.symbol)
    if inner.symbol in rest.free_symbols:
        return None
    half = next((half for half in (0, 1) if is_even(rest - half)), None)
    if half is None:
        return None
    outer = {v.symbol: v.in_wide_lanes(1) for v in used if v is not inner}
    return StridedPair((rest - half).subs(outer) + inner.in_wide_lanes(2), half)
