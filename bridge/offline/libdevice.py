"""For `interpret`: CPU versions of CUDA's libdevice functions for Triton's interpreter.

The interpreter has none: ``libdevice.f`` is a Python stub that returns None.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any
from unittest import mock

import torch

from . import _interpreter_stubs as stubs


def _round_half_away(x: torch.Tensor) -> torch.Tensor:
    return torch.trunc(x + torch.copysign(torch.full_like(x, 0.5), x))


def _cbrt(x: torch.Tensor) -> torch.Tensor:
    return torch.copysign(x.abs().pow(1.0 / 3.0), x)


def _ldexp(x: torch.Tensor, exponent: torch.Tensor) -> torch.Tensor:
    return torch.ldexp(x, exponent).to(x.dtype)


def _ilogb(x: torch.Tensor) -> torch.Tensor:
    return (torch.frexp(x).exponent - 1).to(torch.int32)


# Names that torch has too, with the same meaning and as many arguments.
_SAME_NAME = """
    abs floor ceil trunc rsqrt sqrt exp exp2 expm1 log log2 log10 log1p
    sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
    atan2 pow fmod hypot copysign nextafter erf erfc erfinv lgamma
"""

_OTHER: dict[str, Callable[..., torch.Tensor]] = {
    "fabs": torch.abs,
    "fmax": torch.fmax,
    "fmin": torch.fmin,
    "fma": lambda a, b, c: a * b + c,
    "rint": torch.round,
    "nearbyint": torch.round,
    "llrint": lambda x: torch.round(x).to(torch.int64),
    "round": _round_half_away,
    "llround": lambda x: _round_half_away(x).to(torch.int64),
    "cbrt": _cbrt,
    "ldexp": _ldexp,
    "ilogb": _ilogb,
    "div_rn": torch.div,
    "mul_rn": torch.mul,
    "erfcx": torch.special.erfcx,
    "sqrt_rn": torch.sqrt,
    "fast_expf": torch.exp,
    "fast_logf": torch.log,
    "fast_dividef": torch.div,
    "fast_tanhf": torch.tanh,
    "cyl_bessel_i0": torch.special.i0,
    "cyl_bessel_i1": torch.special.i1,
    "j0": torch.special.bessel_j0,
    "j1": torch.special.bessel_j1,
    "y0": torch.special.bessel_y0,
    "y1": torch.special.bessel_y1,
    # As on the device, these return int32 rather than a boolean.
    "isnan": lambda x: torch.isnan(x).to(torch.int32),
    "isinf": lambda x: torch.isinf(x).to(torch.int32),
    "finitef": lambda x: torch.isfinite(x).to(torch.int32),
    "isfinited": lambda x: torch.isfinite(x).to(torch.int32),
    "signbit": lambda x: torch.signbit(x).to(torch.int32),
    "signbitf": lambda x: torch.signbit(x).to(torch.int32),
}

TORCH_FUNCTIONS = {name: getattr(torch, name) for name in _SAME_NAME.split()} | _OTHER


def _elementwise(function: Callable[..., torch.Tensor]) -> Callable:
    """Return a torch function as one on the interpreter's tensors."""

    def apply(*args: object, **kwargs: object) -> object:
        # Triton passes _semantic and the like by keyword; they mean nothing here.
        return stubs.from_torch(function(*stubs.to_torch(args)))

    return apply


def _missing(name: str) -> Callable:
    def raise_error(*args: object, **kwargs: object) -> None:
        raise NotImplementedError(f"bridge.offline: no CPU version of libdevice.{name}")

    return raise_error


def _replacement(name: str) -> Callable:
    function = TORCH_FUNCTIONS.get(name)
    return _missing(name) if function is None else _elementwise(function)


@contextlib.contextmanager
def cpu_libdevice(module: ModuleType) -> Iterator[None]:
    """Replace every function of Triton's ``libdevice`` module."""
    names = [name for name, member in vars(module).items() if callable(member)]
    replacements: dict[str, Any] = {name: _replacement(name) for name in names}
    with mock.patch.multiple(module, **replacements):
        yield
