"""Measure the errors of a compiled model against eager in float64, with weights and inputs of several seeds."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .model_compiles import Compilation, Model, compiled_to_run
from .model_zoo import randomize

#: Seeds that are looked at, and those that are added where these leave a doubt: rounding flips a choice of experts.
SEEDS, MORE_SEEDS = range(4), range(4, 16)


@dataclasses.dataclass
class Runner:
    """Hold a model and the weights that it was made with."""

    model: Model
    originals: list[torch.Tensor]

    @staticmethod
    def of(model: Model) -> Runner:
        return Runner(model, [weight.detach().clone() for weight in model.module.parameters()])

    def run(self, function: Callable[..., Any], seed: int) -> list[torch.Tensor]:
        """Return outputs, and in training the gradients of all weights, of a compiled function."""
        randomize(self.model, self.originals, seed)
        return run_once(self.model, function)

    def errors(self, backend: Any, target: str, seeds: Sequence[int]) -> tuple[list[float], Compilation]:
        """Return the relative error with each seed; stop before the second if Bridge (or Inductor) changed nothing."""
        found: list[float] = []
        with compiled_to_run(self.model, backend, target) as (compiled, result):
            for seed in seeds:
                given = self.run(compiled, seed)
                found.append(relative_error(given, self.expected(seed)))
        return found, result

    def expected(self, seed: int) -> list[torch.Tensor]:
        randomize(self.model, self.originals, seed)
        wide = copy.deepcopy(self.model).to(torch.float64)
        with torch.set_grad_enabled(self.model.training):
            return run_once(wide, wide.call())


def run_once(model: Model, function: Callable[..., Any]) -> list[torch.Tensor]:
    outputs = [output for output in function(*model.inputs.values()) if output.numel()]
    if not model.training:
        return [output.double() for output in outputs]
    loss = sum(_weighted_sum(output) for output in outputs if output.requires_grad)
    gradients = torch.autograd.grad(loss, _weights(model), allow_unused=True)
    return [value.detach().double() for value in (*outputs, *gradients) if value is not None]


def _weights(model: Model) -> list[torch.Tensor]:
    return [weight for weight in model.module.parameters() if weight.requires_grad]


def _weighted_sum(output: torch.Tensor) -> torch.Tensor:
    """Return a sum whose gradient is another for each element."""
    weights = torch.arange(output.numel(), dtype=torch.float64).mul(0.7).sin().view(output.shape)
    return (output * weights.to(output)).sum()


def relative_error(given: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> float:
    """Return the root mean square, over tensors, of |given - expected| / |expected|.

    It is infinite where something is not finite that should be.
    """
    parts = [_relative_square(a, b) for a, b in zip(given, expected, strict=True)]
    return math.sqrt(sum(parts) / max(len(parts), 1))


def _relative_square(given: torch.Tensor, expected: torch.Tensor) -> float:
    finite = expected.isfinite() & (expected.abs() < 1e30)
    size = expected[finite].square().sum().item()
    if not given[finite].isfinite().all():
        return math.inf
    difference = (given - expected)[finite].square().sum().item()
    return difference / size if size > 1e-20 else 0.0


def error_ratio(ours: Sequence[float], inductors: Sequence[float]) -> float:
    """Return the geometric mean of ours by Inductor's; errors that are both nothing, or both infinite, are the same."""
    logs = [_log_ratio(a, b) for a, b in zip(ours, inductors, strict=True)]
    return math.exp(sum(logs) / max(len(logs), 1))


def _log_ratio(ours: float, inductors: float) -> float:
    if ours == inductors or max(ours, inductors) < 1e-9:
        return 0.0
    return math.log(min(max(ours, 1e-9), 1e9) / min(max(inductors, 1e-9), 1e9))
