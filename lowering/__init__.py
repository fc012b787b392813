"""How kernels are lowered; `compile_affine` does it for affine IR that comes from elsewhere."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name != "compile_affine":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from bridge.lowering.affine_import.importing import compile_affine

    return compile_affine
