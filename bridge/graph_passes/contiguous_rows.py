"""Saves values for the backward with contiguous rows, where it is rows that kernels reduce.

The example is a vision transformer whose tokens a convolution makes.  In memory its channels come first, so what eager
adds to the tokens has the channels first too, and so has every sum of residuals after it.  Inductor chooses by itself
how most values lie in memory, but those that are saved for the backward it stores as eager does.  Each norm then loads
its rows across memory, in the forward and in the backward.

A value may lie otherwise if nobody sees it but the backward, which is compiled for the strides that it gets.  What
eager makes of a contiguous value it makes contiguous, so a change of one value is followed through the graph.

What is counted are the elements that a kernel goes over across memory: a reduction none of whose dimensions is
contiguous, and an operation on tensors whose contiguous dimensions differ.  A change has to make them far fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

import torch
from torch.fx import Graph, Node

from ..inductor import graphs, strides
from ..support.error_boundary import attempt

#: How many times as many elements lie across memory before a change as after it.  With twice as many a step of
#: Mixer-B/16, whose blocks go along the tokens and along the channels, took as long (3674 and 3680 us on an H100).
AT_LEAST = 3

#: A node's value as it lies in memory, before or after a change.
Values = Callable[[Node], Any]


def contiguous_rows(graph: Graph) -> Iterator[str]:
    """Change the strides of values that are saved where that pays; yields a line about each change."""
    results = strides.results(graph)
    if not results.saved:
        return
    positions = {node: position for position, node in enumerate(graph.nodes)}
    convolution = graphs.has_convolution(graph)
    for node in positions:
        with attempt(node.name):
            if _may_lie_otherwise(node, convolution):
                yield from _Change(node, results, positions).lines()


def _may_lie_otherwise(node: Node, convolution: bool) -> bool:
    """Return True if the rows of a value lie across memory; of images Inductor may choose the order by itself."""
    value = graphs.tensor(node)
    if not graphs.is_pointwise(node) or (convolution and value.dim() == 4):
        return False
    return strides.is_dense(value) and value.dim() > 0 and not graphs.known(value.stride(-1) == 1)


@dataclass
class _Change:
    """Hold a first value that becomes contiguous, and what follows.

    before: the values of what has changed, as they lay.
    """

    first: Node
    results: strides.Results
    positions: dict[Node, int]
    before: dict[Node, torch.Tensor] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """Make the change if it pays; yields the line about it."""
        kept = False
        try:
            kept = self._follow() and not self.results.saved.isdisjoint(self.before) and self._pays()
        finally:
            if not kept:
                for node, value in self.before.items():
                    node.meta["val"] = value
        if kept:
            count = len(self.results.saved.intersection(self.before))
            yield f"{graphs.place(self.first)}: {count} values are saved with contiguous rows"

    def _follow(self) -> bool:
        """Give what follows the strides that eager would; return False where somebody else sees them."""
        self.before[self.first] = graphs.tensor(self.first)
        self.first.meta["val"] = strides.contiguous(self.before[self.first])
        waiting: list[tuple[int, Node]] = []
        self._await_users(self.first, waiting)
        while waiting:
            node = heappop(waiting)[1]
            if graphs.sees_strides(node) or node in self.results.fixed:
                return False
            if node not in self.before and self._changes(node):
                self._await_users(node, waiting)
        return self.first not in self.results.fixed

    def _await_users(self, node: Node, waiting: list[tuple[int, Node]]) -> None:
        for user in node.users:
            if not graphs.is_result(user):
                heappush(waiting, (self.positions[user], user))

    def _changes(self, node: Node) -> bool:
        """Give a node the strides that its inputs' have it have; return whether they are others."""
        value = graphs.tensor(node)
        if value is None or not (graphs.is_pointwise(node) or graphs.is_view(node) or graphs.is_reduction(node)):
            return False
        self.before[node] = value
        changed = not strides.same_order(graphs.tensor(graphs.retrace(node)), value)
        if not changed:
            node.meta["val"] = self.before.pop(node)
        return changed

    def _pays(self) -> bool:
        readers = dict.fromkeys(user for node in self.before for user in [node, *node.users])
        before = self._across(readers, self._before)
        return graphs.known(self._across(readers, graphs.tensor) * AT_LEAST < before)

    def _before(self, node: Node) -> Any:
        return self.before.get(node, graphs.tensor(node))

    def _across(self, readers: Iterable[Node], values: Values) -> graphs.Size:
        """Count the elements that kernels go over across memory."""
        return sum(self._elements_across(reader, values) for reader in readers)

    def _elements_across(self, reader: Node, values: Values) -> graphs.Size:
        if graphs.is_result(reader):
            seen = [(values(node), order) for node, order in self.results.visible.items() if node in self.before]
            return sum(value.numel() for value, order in seen if not strides.has_order(value, order))
        if graphs.is_reduction(reader):
            source = values(reader.args[0])
            inner = any(graphs.known(source.stride(dim) == 1) for dim in graphs.reduced_dimensions(reader))
            return 0 if inner else source.numel()
        if graphs.is_pointwise(reader):
            return _turned([values(source) for source in graphs.tensor_inputs(reader)], values(reader))
        if graphs.is_convolution(reader):  # it wants the order that it has, or Inductor another one of its own
            read = [node for node in self.before if node in reader.all_input_nodes]
            return sum(_turned([values(node)], self.before[node]) for node in read)
        return 0


def _turned(read: Iterable[torch.Tensor], made: torch.Tensor) -> graphs.Size:
    """Count the elements that are read across memory if what is made of them, one of each for one, is not."""
    whole = [value for value in read if strides.same_shape(value, made)]
    return sum(value.numel() for value in whole if not strides.same_inner(value, made))
