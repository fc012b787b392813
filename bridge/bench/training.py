"""For `bridge bench`: a step of training, which is forward, backward and the update of the optimiser."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import nn

#: Compiles a function; the identity leaves it as it is.
Compiler: TypeAlias = Callable[[Callable], Callable]

#: Small, so that the weights stay in the range in which they were made.
LEARNING_RATE = 1e-5


class Step:
    """Hold one step of a module with AdamW; forward with backward, and the update, are compiled each for itself."""

    def __init__(self, module: nn.Module, loss: Callable[..., torch.Tensor]):
        self.loss = loss
        self.parameters = list(module.train().requires_grad_(True).parameters())
        self.before = [parameter.detach().clone() for parameter in self.parameters]
        on_gpu = self.parameters[0].is_cuda
        self.optimizer = torch.optim.AdamW(self.parameters, LEARNING_RATE, foreach=True, capturable=on_gpu)

    def assemble(self, compiler: Compiler) -> Callable[..., list[torch.Tensor]]:
        """Return a function that takes the step, with its parts compiled; it returns the loss and all gradients."""
        loss, update = compiler(self.loss), compiler(self._update)

        def step(*inputs: torch.Tensor) -> list[torch.Tensor]:
            with torch.enable_grad():
                value = loss(*inputs)
                gradients = torch.autograd.grad(value, self.parameters, allow_unused=True)
            for parameter, gradient in zip(self.parameters, gradients, strict=True):
                parameter.grad = gradient
            update()
            self.optimizer.zero_grad()
            return [value.detach(), *(gradient for gradient in gradients if gradient is not None)]

        return step

    def rewind(self) -> None:
        """Undo all steps, and begin the random numbers anew."""
        torch.manual_seed(0)
        with torch.no_grad():
            for parameter, before in zip(self.parameters, self.before, strict=True):
                parameter.copy_(before)
            for state in self.optimizer.state.values():
                for value in state.values():
                    value.zero_()

    def _update(self) -> None:
        self.optimizer.step()


def flat(result: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return the loss, and all gradients in one row: one that is zero but for rounding has no error of its own."""
    value, *gradients = result
    return [value, torch.cat([gradient.flatten() for gradient in gradients])]


def language_loss(module: nn.Module) -> Callable[..., torch.Tensor]:
    """Return the loss of the next tokens of a causal language model."""

    def loss(ids: torch.Tensor) -> torch.Tensor:
        logits = module(input_ids=ids, use_cache=False).logits
        return F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), ids[:, 1:].flatten())

    return loss


def class_loss(call: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return the cross entropy of classes that are all the first one."""

    def loss(pixels: torch.Tensor) -> torch.Tensor:
        logits = call(pixels)
        return F.cross_entropy(logits.float(), torch.zeros(logits.shape[0], dtype=torch.int64, device=logits.device))

    return loss


def square_loss(call: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return the mean of the squares of what a model gives."""

    def loss(*inputs: torch.Tensor) -> torch.Tensor:
        return call(*inputs).float().square().mean()

    return loss
