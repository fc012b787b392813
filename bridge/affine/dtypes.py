"""Map torch dtypes to the MLIR types that stand for them.

MLIR's integers are signless; `uint8` and `int8` are both `i8`, and what tells them apart is the operation
(`arith.divui` / `arith.divsi`) or, for conversions, `bridge.convert`'s attributes.
"""

from __future__ import annotations

import torch

from ..reasons import Reason, Unsupported

_TYPE_NAMES: dict[torch.dtype, str] = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "f8E4M3FN",
    torch.float8_e5m2: "f8E5M2",
    torch.float8_e4m3fnuz: "f8E4M3FNUZ",
    torch.float8_e5m2fnuz: "f8E5M2FNUZ",
    torch.float8_e8m0fnu: "f8E8M0FNU",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint64: "i64",
    torch.uint32: "i32",
    torch.uint16: "i16",
    torch.uint8: "i8",
    torch.bool: "i1",
}

_SIGNED_DTYPES: dict[str, torch.dtype] = {
    name: dtype for dtype, name in _TYPE_NAMES.items() if not str(dtype).startswith("torch.uint")
}

#: Stored in 16 bits, computed in float32.
LOW_PRECISION = frozenset({torch.float16, torch.bfloat16})

#: Scales that are powers of two. In Inductor's kernels they are bytes, whose bits are made and moved as integers.
ONLY_BITS = frozenset({torch.float8_e8m0fnu})

UNSIGNED = frozenset(d for d in _TYPE_NAMES if str(d).startswith("torch.uint"))


def type_name(dtype: torch.dtype) -> str:
    """Return the MLIR spelling of a dtype; Unsupported(unsupported_dtype) for complex and quantised ones."""
    if dtype not in _TYPE_NAMES:
        raise Unsupported(Reason.unsupported_dtype, str(dtype))
    return _TYPE_NAMES[dtype]


def signed_dtype(name: str) -> torch.dtype:
    """Return the signed (or float, or bool) dtype that an MLIR type name stands for."""
    if name not in _SIGNED_DTYPES:
        raise Unsupported(Reason.unsupported_dtype, f"MLIR type {name}")
    return _SIGNED_DTYPES[name]


def dtype_name(dtype: torch.dtype) -> str:
    """Return the spelling of a dtype in the attributes of `bridge.convert`: `uint8` for `torch.uint8`."""
    return str(dtype).removeprefix("torch.")


def dtype_from_name(name: str) -> torch.dtype:
    """Return the dtype that `dtype_name` spells so."""
    return getattr(torch, name)


def compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype in which numbers of a dtype are computed."""
    return torch.float32 if dtype in LOW_PRECISION else dtype


def least(dtype: torch.dtype) -> bool | int | float:
    """Return the least number of a dtype; Unsupported(unsupported_dtype) for those of 8 bits that are floats."""
    if dtype == torch.bool:
        return False
    if not dtype.is_floating_point:
        return torch.iinfo(dtype).min
    if dtype.itemsize == 1:
        raise Unsupported(Reason.unsupported_dtype, f"the least number of {dtype}")
    return float("-inf")


def kind(dtype: torch.dtype) -> str:
    """Return the kind of numbers: `float`, `bool`, `unsigned` or `signed`."""
    if dtype.is_floating_point:
        return "float"
    if dtype == torch.bool:
        return "bool"
    return "unsigned" if dtype in UNSIGNED else "signed"
