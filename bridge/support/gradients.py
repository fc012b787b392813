"""Call a function with its backward, for `bridge explain` and `bridge time`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

#: How a function without a backward is refused.
NO_GRADIENT = "no result of the function has a gradient"


class NoGradient(ValueError):
    """Signal a function that has no backward."""


def leaves(arguments: Sequence[Any]) -> list[Any]:
    """Return arguments of which tensors want gradients: those that did, or where none did all with a fraction."""
    asked = any(tensor.requires_grad for tensor in tensors_in(arguments))

    def leaf(tensor: torch.Tensor) -> torch.Tensor:
        wants = tensor.requires_grad if asked else tensor.is_floating_point() or tensor.is_complex()
        made = tensor.detach().requires_grad_(wants)
        made.__dict__.update(tensor.__dict__)  # what was said of it, as by mark_dynamic
        return made

    return pytree.tree_map_only(torch.Tensor, leaf, list(arguments))


def tensors_in(value: object) -> list[torch.Tensor]:
    """Return the tensors of arguments or of a result, whatever holds them."""
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def modules_of(function: Callable[..., Any]) -> list[nn.Module]:
    """Return a module, or the modules that a function finds in its file."""
    own = inspect.unwrap(function)
    found = [own, *getattr(own, "__globals__", {}).values()]
    return [module for module in found if isinstance(module, nn.Module)]


class WithBackward:
    """Give, for a function, a call of it with its backward, for the same random gradients of its results each time."""

    def __init__(self) -> None:
        self._given: list[torch.Tensor] = []

    def __call__(self, function: Callable[..., Any], compiled: Callable[..., Any]) -> Callable[..., list[torch.Tensor]]:
        """Return a function that gives results, and gradients of arguments and parameters; NoGradient for none.

        function: has the parameters; compiled: is called.
        """
        parameters = [p for module in modules_of(function) for p in module.parameters() if p.requires_grad]

        def step(*arguments: Any) -> list[torch.Tensor]:
            inputs = leaves(arguments)
            with torch.enable_grad():
                results = tensors_in(compiled(*inputs))
            heads = [result for result in results if result.requires_grad]
            wanted = [*(tensor for tensor in tensors_in(inputs) if tensor.requires_grad), *parameters]
            if not heads:
                raise NoGradient(NO_GRADIENT)
            gradients = torch.autograd.grad(heads, wanted, self._gradients(heads), allow_unused=True)
            return [*(result.detach() for result in results), *(one for one in gradients if one is not None)]

        return step

    def _gradients(self, heads: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return the gradients of results; the first call draws them."""
        if not self._given:
            self._given = [_drawn_like(head) for head in heads]
        return [one.to(head.dtype) for one, head in zip(self._given, heads, strict=True)]


def _drawn_like(head: torch.Tensor) -> torch.Tensor:
    """Return random numbers of a result's dtype; PyTorch draws none of 8 bits, so these are rounded."""
    drawn = head.dtype if head.dtype.itemsize > 1 else torch.float32
    return torch.randn_like(head, dtype=drawn, requires_grad=False).detach().to(head.dtype)
