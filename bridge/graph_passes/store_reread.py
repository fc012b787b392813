"""Stores a value that several kernels would compute again from several tensors.

A chain of residuals is the example: in `x1 = x + a; x2 = x1 + b; x3 = x2 + c`, with a norm of each and a library call
behind each norm, Inductor has the norms read 2, 3, 4 tensors, and 5, and only then stores a sum.

What is counted are tensors of the value's size, in units of its bytes.  Let a kernel load L of them to compute the
value.  Two kernels that compute it load 2 L; if the first one stores it, they load L + 1 and store 1.  So storing it
pays for itself at the second kernel if L > 2, and at L = 2 it does not.  Each later kernel saves another L - 1, which
is not counted on, as one of them may store a sum that has this value in it.  Where the second kernel loads one of the
L tensors anyhow, that one is not saved.  For a chain this stores every other sum, and the norms read 2, 3, 2, 3, ...

The value must not cost a kernel of its own: a kernel that needs it first has to go over it in its order.
"""

from __future__ import annotations

from collections import ChainMap, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..inductor import graphs
from .loads import Loads, Memory, inputs_loads, level, needed_in_memory


def store_reread(graph: Any) -> Iterator[str]:
    """Has Inductor store what is worth it; yields a line about each."""
    for node, loads in list(_find_reread(graph)):
        graphs.store(node)
        yield f"{graphs.place(node)}: stored, so that later kernels read 1 tensor of its size for it and not {loads:g}"


def _find_reread(graph: Any) -> Iterator[tuple[Any, float]]:
    """The nodes to store, in order, with the tensors that each kernel would load for it; changes nothing."""
    nodes, known = list(graph.nodes), dict[Any, Loads]()
    positions = {node: position for position, node in enumerate(nodes)}
    convolution, needed = graphs.has_convolution(graph), needed_in_memory(nodes)
    for node in nodes:
        value = graphs.tensor(node)
        if value is None:
            continue
        memory = Memory(needed, graphs.store_limits(value.device))
        known[node] = loads = memory.loads(node, known)
        if not memory.computed_again(node):
            continue
        pays = _may_pay(node, loads, convolution) and _Readers(node, memory, known, positions).pay(nodes)
        if pays:
            yield node, _amount(loads, node)
        if pays or memory.inductor_stores(node, loads):
            needed.add(node)
            known[node] = frozenset([node])


def _may_pay(node: Any, loads: Loads, convolution: bool) -> bool:
    """What the node itself says; Inductor may choose another layout than the graph's for images."""
    value = graphs.tensor(node)
    if not graphs.is_pointwise(node) or len(node.users) < 2 or not value.dtype.is_floating_point:
        return False
    plain = graphs.is_contiguous(node) and not (convolution and value.dim() == 4)
    return plain and _amount(loads, node) > 2


def _amount(loads: Loads, node: Any) -> float:
    """The bytes of loads that are of a node's size, over the node's bytes; smaller ones do not count."""
    whole = [graphs.tensor(load) for load in loads if graphs.tensor(load) is not None and graphs.same_size(load, node)]
    return sum(value.dtype.itemsize for value in whole) / graphs.tensor(node).dtype.itemsize


@dataclass
class _Kernel:
    """What is loaded at a level, with the value computed again or stored, and whether for the value's sake."""

    again: set[Any] = field(default_factory=set)
    stored: set[Any] = field(default_factory=set)
    needs_value: bool = False


class _Readers:
    """The kernels that would compute a node's value, one a level: kernels of a level may turn out to be one."""

    def __init__(self, node: Any, memory: Memory, known: dict[Any, Loads], positions: dict[Any, int]):
        self.node, self.memory, self.positions = node, memory, positions
        self.again = ChainMap[Any, Loads]({}, known)
        self.stored = ChainMap[Any, Loads]({node: frozenset([node])}, known)
        self.levels = {node: 0}
        self.in_order = {node}
        self.kernels = defaultdict[int, _Kernel](_Kernel)
        self.has_host = False
        self.last = self._last_user(node)

    def pay(self, nodes: list[Any]) -> bool:
        """Whether a kernel of level 0 can store the value, and the first one after it saves more than that."""
        for node in nodes[self.positions[self.node] + 1 :]:
            at, second = level(node, self.levels), self._second()
            if self.positions[node] > self.last or (second is not None and at is not None and at > second):
                break
            self._visit(node, at)
        second = self._second()
        if second is None or not self.has_host:
            return False
        kernel = self.kernels[second]
        return _amount(frozenset(kernel.again), self.node) - _amount(frozenset(kernel.stored), self.node) > 1

    def _second(self) -> int | None:
        return min((at for at, kernel in self.kernels.items() if at > 0 and kernel.needs_value), default=None)

    def _last_user(self, node: Any) -> int:
        return max((self.positions[user] for user in node.users), default=0)

    def _visit(self, node: Any, at: int | None) -> None:
        if at is not None:
            self.levels[node] = at
        again, stored = inputs_loads(node, self.again), inputs_loads(node, self.stored)
        if self.memory.computed_again(node) and not self.memory.inductor_stores(node, again):
            self.again[node], self.stored[node] = again, stored
            if self.node in stored:
                self.last = max(self.last, self._last_user(node))
                self._follow_order(node)
            return
        self.again[node] = self.stored[node] = frozenset([node])
        if at is not None and (graphs.is_pointwise(node) or graphs.is_reduction(node)):
            self._read(self.kernels[at], again, stored)
            self.has_host |= at == 0 and self._goes_over_all(node)

    def _read(self, kernel: _Kernel, again: Loads, stored: Loads) -> None:
        kernel.again |= again
        kernel.stored |= stored
        kernel.needs_value |= self.node in stored

    def _follow_order(self, node: Any) -> None:
        if graphs.keeps_order(node) or graphs.is_pointwise(node):
            if self._from_in_order(node) and graphs.same_size(node, self.node):
                self.in_order.add(node)

    def _goes_over_all(self, node: Any) -> bool:
        """Whether a kernel for this node has the value's elements in its loops, in their order."""
        if not self._from_in_order(node):
            return False
        if graphs.is_pointwise(node):
            return graphs.same_size(node, self.node)
        rank, reduced = graphs.tensor(node.args[0]).dim(), graphs.reduced_dimensions(node)
        return len(reduced) < rank and reduced == set(range(rank - len(reduced), rank))

    def _from_in_order(self, node: Any) -> bool:
        return any(source in self.in_order for source in node.all_input_nodes)
