"""Define an operator for parts of a graph that are tried alone: it stands for what is between its inputs and result.

Without it, a region of a graph knows nothing of the operations outside of it by which one of its values becomes another
one.  Inductor would have what comes before them and what comes after them in one kernel, which it cannot in the graph.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.fx import Graph, Node


@functools.cache
def _operator() -> Callable[..., Any]:
    """Define `torch.ops.bridge.outside`: a library call, to Inductor, of which any layout may be an input."""
    name = "bridge::outside"
    schema = "(Tensor[] inputs, int[] size, int[] stride, ScalarType dtype, Device device) -> Tensor"
    torch.library.define(name, schema, tags=torch.Tag.flexible_layout)
    torch.library.register_fake(name, _shape)
    operator: Callable[..., Any] = torch.ops.bridge.outside.default
    return operator


def _shape(inputs: list[Any], size: list[int], stride: list[int], dtype: torch.dtype, device: torch.device) -> Any:
    return torch.empty_strided(size, stride, dtype=dtype, device=device)


def computed_outside(graph: Graph, inputs: Iterable[Node], node: Node) -> Node:
    """Add to a graph what stands for the operations that compute a node's tensor, of numbers as sizes, from inputs."""
    value = node.meta["val"]
    arguments = (list(inputs), list(value.shape), list(value.stride()), value.dtype, value.device)
    made = graph.create_node("call_function", _operator(), arguments, name=node.name)
    made.meta = {"val": value}
    return made
