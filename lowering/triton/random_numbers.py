"""Random numbers that depend on their seed and offset alone, whatever the kernel that draws them.

From torch 2.13 on, Inductor's kernels of one dimension draw others for the same seed and offset (pytorch#198333): where
the backward draws the numbers of the forward again, in a kernel of two dimensions, it gets another mask. Torch 2.15 has
an option for it, which is off.
"""

from __future__ import annotations

import functools


class _OneByOne:
    """Emit the functions that kernels of two dimensions draw by."""

    @staticmethod
    def rand(seed: object, offset: object) -> str:
        """Return code for a number between 0 and 1."""
        return f"tl.rand({seed}, ({offset}).to(tl.uint32))"

    @staticmethod
    def randn(seed: object, offset: object) -> str:
        """Return code for a number of the normal distribution."""
        return f"tl.randn({seed}, ({offset}).to(tl.uint32))"


@functools.cache
def drawing_alike(overrides: type) -> type:
    """Return Inductor's code for operations (`overrides`), with one function of seed and offset for all kernels."""
    return type(overrides.__name__, (_OneByOne, overrides), {})
