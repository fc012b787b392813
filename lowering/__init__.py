"""Everything after the passes: the lift to loop bodies, code generation, and affine IR that comes from elsewhere.

In: affine IR that the passes transformed.  Out: kernels in Inductor's schedule, and the classes that generate their
code.  The rooms are `lift`, `triton` and `affine_import`; they may import `bridge.affine`, `bridge.support`, the
adapter to Inductor and `bridge.reasons`, and nothing of `bridge.scheduling`.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """Return `compile_affine`, whose module is loaded when it is asked for."""
    if name != "compile_affine":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from bridge.lowering.affine_import.importing import compile_affine  # loads torch

    return compile_affine
