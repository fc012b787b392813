"""For `bridge bench --corpus`: what a pattern gives in float64, and how far a compiler's results are from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ...support.gradients import tensors_in
from ..exact import NARROW, doubled

#: Bridge's error may be as many times Inductor's, and this much more (in the norm, relative): for what is not
#: floating, one of a thousand elements, as rounding decides about comparisons; and where Inductor is the reference,
#: what rounding to 16 bits may differ by.
FACTOR, SLACK, SLACK_OF_OTHERS, SLACK_BETWEEN = 1.5, 1e-6, 1e-3, 1e-2


class _InDouble(TorchDispatchMode):
    """Have every operator that names a narrower floating dtype compute in float64."""

    def __torch_dispatch__(
        self, func: Callable, types: Sequence[type], args: tuple = (), kwargs: dict | None = None
    ) -> object:
        if func is torch.ops.aten.view.dtype:
            raise ValueError("the bits of a value are read, which are others in float64")
        args, kwargs = pytree.tree_map(_widened, (args, kwargs or {}))
        return func(*args, **kwargs)


def _widened(value: object) -> object:
    return torch.float64 if isinstance(value, torch.dtype) and value in NARROW else value


def in_double(call: Callable, inputs: Sequence[object]) -> list[torch.Tensor]:
    """Return `results` of the call in float64."""
    widened = [doubled(value) for value in inputs]
    with _InDouble():
        return results(call, widened)


def results(call: Callable, inputs: Sequence[object]) -> list[torch.Tensor]:
    """Call, and return what it returns, and the inputs that it has changed."""
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    before = [tensor._version for tensor in tensors]
    returned = tensors_in(call(*inputs))
    return returned + [t for t, version in zip(tensors, before, strict=True) if t._version != version]


def error(got: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the norm of the difference over the reference's; infinity where what is not finite differs."""
    got, expected = got.double(), expected.double()
    finite = expected.isfinite()
    others = torch.where(finite, 0.0, expected)
    if not torch.equal(torch.nan_to_num(others, 3.0), torch.nan_to_num(torch.where(finite, 0.0, got), 3.0)):
        return float("inf")
    difference = torch.where(finite, got - expected, 0.0).norm()
    relative = (difference / torch.where(finite, expected, 0.0).norm().clamp_min(1e-300)).item()
    return float("inf") if math.isnan(relative) else relative


def errors(results_: Sequence[torch.Tensor], reference: Sequence[torch.Tensor]) -> list[float]:
    """Return `error` of each result."""
    return [error(got, expected) for got, expected in zip(results_, reference, strict=True)]


def too_far(ours: Sequence[float], theirs: Sequence[float], slacks: Sequence[float]) -> list[int]:
    """Return the results of which Bridge's error is above what Inductor's allows."""
    pairs = enumerate(zip(ours, theirs, slacks, strict=True))
    return [number for number, (our, their, slack) in pairs if our > FACTOR * their + slack and our != their]


def slacks(results_: Sequence[torch.Tensor], exact: bool) -> list[float]:
    """Return how far each result may be off by rounding; exact: from float64, not from another's results."""
    if not exact:
        return [SLACK_BETWEEN for _ in results_]
    return [SLACK if tensor.is_floating_point() else SLACK_OF_OTHERS for tensor in results_]
