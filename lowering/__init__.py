"""How kernels are lowered; `compile_affine` does it for affine IR that comes from elsewhere."""

from __future__ import annotations


def __getattr__(name: str) -> object:
    if name != "compile_affine":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from bridge.importing import compile_affine

    return compile_affine
