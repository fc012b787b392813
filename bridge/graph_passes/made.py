"""Nodes that a pass makes before another one, which it may erase again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch.fx import Graph, Node
from torch.fx.node import Argument

from ..inductor import graphs
from ..inductor.graphs import aten


@dataclass
class Made:
    """New nodes before another one, with what is known of its place; nodes: in order."""

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

    def erase(self) -> None:
        """Take the new nodes out of the graph."""
        for node in reversed(self.nodes):
            self.graph.erase_node(node)
