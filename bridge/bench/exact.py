"""For `bridge time`: what a function gives in float64, or as exactly as it can be had."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ..support.gradients import tensors_in

#: What is computed in float64 instead.
NARROW = frozenset({torch.float16, torch.bfloat16, torch.float32})

#: What a function that cannot be run in float64 raises, such as one with an operator of its own.
_NOT_EXACT = (RuntimeError, TypeError, NotImplementedError)


class _InDouble(TorchDispatchMode):
    """Run every operation on floating-point numbers in float64, but those that change an operand of theirs."""

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if kwargs.get("dtype") in NARROW:
            kwargs["dtype"] = torch.float64
        if not func._schema.is_mutable:
            args, kwargs = pytree.tree_map(doubled, (args, kwargs))
        return func(*args, **kwargs)


def doubled(value: Any) -> Any:
    """Return a tensor of floating-point numbers in float64; anything else as it is."""
    return value.double() if isinstance(value, torch.Tensor) and value.dtype in NARROW else value


def _own_doubled(tensor: torch.Tensor) -> torch.Tensor:
    return doubled(tensor.clone())


def tensors_of(result: object) -> list[torch.Tensor]:
    """Return copies of the tensors of a function's result, whatever holds them."""
    return [tensor.detach().clone() for tensor in tensors_in(result)]


def copied(arguments: Sequence[Any]) -> list[Any]:
    """Return arguments with copies of their tensors, of which those want gradients that did."""
    return _each(lambda tensor: tensor.clone(), arguments)


def _each(change: Callable[[torch.Tensor], torch.Tensor], arguments: Sequence[Any]) -> list[Any]:
    """Return arguments with new tensors, of which those want gradients that did."""

    def changed(tensor: torch.Tensor) -> torch.Tensor:
        return change(tensor.detach()).requires_grad_(tensor.requires_grad)

    return [pytree.tree_map_only(torch.Tensor, changed, one) for one in arguments]


#: Gives what is called, for (a function, what it is compiled to): that, or it with its backward.
StepOf: TypeAlias = Callable[[Callable[..., Any], Callable[..., Any]], Callable[..., Any]]


def alone(function: Callable[..., Any], compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Return what a function is compiled to, as what is called."""
    return compiled


def reference(
    function: Callable[..., Any], arguments: Sequence[Any], step: StepOf = alone
) -> tuple[list[torch.Tensor], str]:
    """Return (tensors of the result, how they were computed): in float64, else in the function's own dtypes.

    A module is copied, and so are the arguments; what the function changes elsewhere stays changed.
    """
    torch.manual_seed(0)
    own = copy.deepcopy(function) if isinstance(function, torch.nn.Module) else function
    try:
        exact = copy.deepcopy(own).double() if isinstance(own, torch.nn.Module) else own
        with _InDouble():
            return tensors_of(step(exact, exact)(*_each(_own_doubled, arguments))), "float64 eager"
    except _NOT_EXACT:
        return tensors_of(step(own, own)(*copied(arguments))), "eager in its own dtypes"
