"""Tell what a compilation's options promise about results beyond eager's, and which of it a fusion would not keep.

Most of Inductor's options that change results are its code generators' own: a lifted body goes through the same
`ops.*`, and has what they do (division rounded to nearest, fast math, flushed denormals, the library of functions, the
compiler's flags).  Those that decide on more than one operation are here.
"""

from __future__ import annotations

import torch

from .schedule import generates_triton


def emulates_eager_rounding() -> bool:
    """Return True if each operation on 16-bit floats rounds its result, whatever is fused."""
    from torch._inductor import config

    return bool(config.emulate_precision_casts)


def is_deterministic() -> bool:
    """Return True if timing may not make a choice that results depend on, as a reduction's block or warps."""
    from torch._inductor import config

    return bool(config.deterministic or torch.are_deterministic_algorithms_enabled() or _is_batch_invariant())


def unkept_promise() -> str | None:
    """Return what this compilation promises that a graph which Bridge has changed would not keep; else None."""
    if _is_batch_invariant():
        return "batch_invariant: which kernels are one, and the order of their sums, may differ between batch sizes"
    numerics = _numerics()
    if numerics != "default":
        return f"numerics={numerics!r}: each operation is to round, or each sum to be in the order, as in eager mode"
    if _keeps_order_of_zeros():
        return "strict_signed_zero: the order of a row's elements decides on the sign of a maximum or a minimum of zero"
    return None


def computes_in_16_bits(device: torch.device) -> bool:
    """Return True if the device's code rounds after each operation on 16-bit floats; affine IR does not."""
    from torch._inductor import config

    return generates_triton(device) and not config.triton.codegen_upcast_to_fp32


def _numerics() -> str:
    """Read the option `numerics`, which there was not before torch 2.15."""
    from torch._inductor import config

    return str(getattr(config, "numerics", "default"))


def _keeps_order_of_zeros() -> bool:
    """Read the option `strict_signed_zero`, which there was not before torch 2.15."""
    from torch._inductor import config

    return bool(getattr(config, "strict_signed_zero", False))


def _is_batch_invariant() -> bool:
    """Read the option `batch_invariant`, which there was not before torch 2.13."""
    from torch._inductor import config

    return bool(getattr(config, "batch_invariant", False))
