"""Nodes that a pass makes before another one, which it may erase again."""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import torch
from torch.fx import Graph, Node
from torch.fx.node import Argument

from ..inductor import graphs
from ..inductor.graphs import aten


@dataclass
class Made:
    """Hold new nodes before another one, with what is known of its place; nodes: in order."""

    graph: Graph
    before: Node
    nodes: list[Node] = field(default_factory=list)

    def call(self, target: Callable[..., object], *args: Argument, **kwargs: Argument) -> Node:
        """Return a new node of a function."""
        with self.graph.inserting_before(self.before):
            node = self.graph.call_function(target, args, kwargs)
        node.meta = dict(self.before.meta)
        self.nodes.append(node)
        return graphs.retrace(node)

    def places(self, shape: Sequence[Argument], dimension: int, of: torch.Tensor, start: int = 0) -> Node:
        """Return a node with the number of each place along a dimension, from `start` on, for the shape of `of`."""
        node = self.call(
            torch.ops.prims.iota.default,
            shape[dimension],
            start=start,
            step=1,
            dtype=torch.int64,
            device=of.device,
            requires_grad=False,
        )
        for _ in range(of.dim() - dimension - 1):
            node = self.call(aten.unsqueeze.default, node, -1)
        return node

    def padded(self, node: Node, shape: Sequence[Argument], dimensions: Container[int], value: int) -> Node:
        """Return a node as long as a shape along some dimensions, where a value follows it; it is no longer there."""
        lengths = graphs.tensor(node).shape
        missing = [self._missing(node, n, shape[n]) if n in dimensions else 0 for n in range(len(lengths))]
        amounts = [amount for after in reversed(missing) for amount in (0, after)]
        return self.call(aten.constant_pad_nd.default, node, amounts, value) if any(missing) else node

    def _missing(self, node: Node, dimension: int, length: Argument) -> Argument:
        """Return by how much a node is shorter than a length along a dimension."""
        own = graphs.tensor(node).shape[dimension]
        if isinstance(own, int) and isinstance(length, int):
            return length - own
        return self.call(operator.sub, length, self.call(aten.sym_size.int, node, dimension))

    def number(self, number: Argument, of: torch.Tensor) -> Node:
        """Return a node with one number, in the dtype of `of` and where that is."""
        return self.call(aten.full.default, [], number, dtype=of.dtype, device=of.device)

    def where(self, found: Node, value: Node, rest: Argument, of: torch.Tensor) -> Node:
        """Return a node with a value where a condition holds, and elsewhere with a number, in the dtype of `of`."""
        return self.call(aten.where.self, found, value, self.number(rest, of))

    def erase(self) -> None:
        """Take the new nodes out of the graph."""
        for node in reversed(self.nodes):
            self.graph.erase_node(node)


def erase_unread(nodes: Iterable[Node]) -> None:
    """Take those of some nodes out of their graph that nothing reads any more, the last one first."""
    for node in sorted(nodes, reverse=True):
        if not node.users:
            node.graph.erase_node(node)


def replace(graph: Graph, node: Node, make: Callable[[Made], Node]) -> bool:
    """Return True where what is made is in a node's place; changes nothing where its strides would be others."""
    made = Made(graph, node)
    with ExitStack() as undo:
        undo.callback(made.erase)
        result = make(made)
        if graphs.tensor(result).stride() != graphs.tensor(node).stride():
            return False
        undo.pop_all()
    node.replace_all_uses_with(result)
    graph.erase_node(node)
    return True
