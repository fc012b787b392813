"""Compute the integers that a node of the FX graph has, whatever the graph is given: where windows lie, say."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from .graphs import WHOLE_VIEWS, aten, tensor

#: Integers that are computed while the graph is compiled, at most, for each node.
MOST_INTEGERS = 1 << 20

#: What is computed of integers: of floating-point numbers, a kernel may round others.
_COMPUTED = {
    *WHOLE_VIEWS,
    *(aten.unfold.default, aten.clone.default, aten.slice.Tensor, aten.select.int, aten.flip.default),
    *(aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, torch.ops.prims.convert_element_type.default),
}


def integers(node: Node) -> torch.Tensor | None:
    """Return the integers that a node has, on the CPU; None where they depend on an input, or are not known."""
    known: dict[Node, torch.Tensor] = {}
    for one in _needed(node):
        value = _value(one, known)
        if value is None:
            return None
        known[one] = value
    return known[node]


def _needed(node: Node) -> list[Node]:
    """Return what a node is computed of, and the node, in the graph's order."""
    found, left = {node}, [node]
    while left:
        for one in left.pop().all_input_nodes:
            if one not in found:
                found.add(one)
                left.append(one)
    return sorted(found)


def _value(node: Node, known: dict[Node, torch.Tensor]) -> torch.Tensor | None:
    shape = tensor(node)
    if shape is None or shape.is_floating_point() or shape.is_complex() or not _is_small(shape):
        return None
    if node.target is torch.ops.prims.iota.default:
        first, step = node.kwargs["start"], node.kwargs["step"]
        return torch.arange(shape.shape[0], device="cpu").mul_(step).add_(first).to(shape.dtype)
    if node.target not in _COMPUTED or not node.all_input_nodes:
        return None
    arguments: Any = map_arg((node.args, dict(node.kwargs)), known.__getitem__)
    result: torch.Tensor = node.target(*arguments[0], **arguments[1])
    return result


def _is_small(value: torch.Tensor) -> bool:
    return all(isinstance(length, int) for length in value.shape) and value.numel() <= MOST_INTEGERS
