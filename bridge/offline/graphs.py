"""For `bridge time`: the graphs that a program compiles, with the inputs of their first calls."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
from torch.utils import _pytree as pytree

from ..support.gradients import tensors_in


@dataclass
class Graph:
    """Hold a graph of Dynamo's; inputs: those of its first call, None without one; calls: how many there were."""

    module: torch.fx.GraphModule
    inputs: list[Any] | None = None
    calls: int = 0
    trained: bool = field(default=False)

    def __call__(self, *arguments: Any) -> Any:
        """Run the graph in eager mode."""
        self.calls += 1
        if self.inputs is None:
            self.inputs = pytree.tree_map_only(torch.Tensor, torch.Tensor.detach, list(arguments))
            self.trained = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors_in(arguments))
        return self.module.forward(*arguments)


@contextlib.contextmanager
def collecting() -> Iterator[list[Graph]]:
    """Have what a program gives Inductor or Bridge in the block run in eager mode, and keep it."""
    graphs: list[Graph] = []

    def compile_fx(gm: torch.fx.GraphModule, inputs: Sequence[object], *args: object, **kwargs: object) -> Callable:
        graphs.append(Graph(gm))
        return graphs[-1]

    import torch._inductor.compile_fx as module

    with mock.patch.object(module, "compile_fx", compile_fx):
        yield graphs
