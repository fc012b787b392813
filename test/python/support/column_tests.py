"""Hold what tests of kernels of rows and columns share: a backend, a gradient's leaf, a program, what reports say."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch

import bridge
from bridge.backend import bridge as backend

TRAINING = functools.partial(backend, options={"strict": True, "training": True})


def beside_product(function: Callable, *inputs: torch.Tensor) -> tuple:
    """Return what a function gives, and a product of the last input, which is where the peak of memory is."""
    *others, wide = inputs
    return function(*others), wide @ wide @ wide


def decisions() -> list[str]:
    """Return the lines of the last report about kernels of rows and columns."""
    return [line for group in bridge.report().groups for line in group.decisions if line.startswith("rows and columns")]


def leaf(*size: int) -> torch.Tensor:
    """Return a tensor that wants a gradient, of no particular numbers."""
    return torch.empty(size, dtype=torch.bfloat16, requires_grad=True)
