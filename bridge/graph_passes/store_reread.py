"""Stores a value that several kernels would compute again from several tensors.

A chain of residuals is the example: in `x1 = x + a; x2 = x1 + b; x3 = x2 + c`, with a norm of each and a library call
behind each norm, Inductor has the norms read 2, 3, 4 tensors, and 5, and only then stores a sum.

What is counted are tensors of the value's size, in units of its bytes.  Let a kernel load L of them to compute the
value.  Two kernels that compute it load 2 L; if the first one stores it, they load L + 1 and store 1.  So storing it
pays for itself at the second kernel if L > 2.  Each later kernel saves another L - 1, which is not counted on, as one
of them may store a sum that has this value in it.  A tensor that something else reads later is not saved, and does not
count.

At L = 2 the kernels move as much as before.  The value is stored all the same if the graph made both tensors: 1 of
them lives until the second kernel then, and not 2.  Where that kernel needs a part of the value only, this costs up to
1 written.  For a chain all sums are stored but the first, which has an input in it, and the norms read 2 tensors.

On GPUs, torch 2.15 has a library call add a plain product to a sum (`addmm`).  Such a sum is in memory by itself; left
are others, as where a product goes through an activation first.

The value must not cost a kernel of its own: the kernels that need it first have to go over it in its order.

Nor may it cost digits.  Kernels compute in float32 what the graph has in 16 bits, so a sum that each computes again is
rounded nowhere, and stored in 16 bits it is: it is stored only where its dtype has all of it, which is so for float32,
for what selects among tensors in memory, and where Inductor rounds after each operation.  In float32, a sum of 16-bit
tensors would be as precise; but it takes the bytes of two of them.  Two kernels then load 2 L of them, or L + 2 and
store 2: no less up to L = 4, and from 5 on Inductor stores by itself.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator

from torch.fx import Graph, Node

from ..inductor import graphs
from ..support.error_boundary import attempt
from .loads import Loads, Memory, inputs_loads, level, needed_in_memory


def store_reread(graph: Graph) -> Iterator[str]:
    """Have Inductor store what is worth it; yields a line about each."""
    for node, loads in list(_find_reread(graph)):
        graphs.store(node)
        yield f"{graphs.place(node)}: stored, so that later kernels read 1 tensor of its size for it and not {loads:g}"


def _find_reread(graph: Graph) -> Iterator[tuple[Node, float]]:
    """Return the nodes to store, in order, with the tensors that each kernel would load for it; changes nothing."""
    nodes, known, exact = list(graph.nodes), dict[Node, Loads](), set[Node]()
    positions = {node: position for position, node in enumerate(nodes)}
    convolution, needed = graphs.has_convolution(graph), needed_in_memory(nodes)
    for node in nodes:
        value = graphs.tensor(node)
        if value is None:
            continue
        memory = Memory(needed, graphs.store_limits(value.device))
        known[node] = loads = memory.loads(node, known)
        if memory.exact(node, exact):
            exact.add(node)
        if not memory.computed_again(node):
            continue
        pays = False
        with attempt(node.name):
            may_pay = node in exact and _may_pay(node, convolution)
            spares = may_pay and _spares(node, _saved(node, loads, memory, positions), memory)
            pays = spares and _Readers(node, memory, known, positions).several(nodes)
        if pays:
            yield node, _amount(loads, node)
        if pays or memory.inductor_stores(node, loads):
            needed.add(node)
            exact.add(node)
            known[node] = frozenset([node])


def _may_pay(node: Node, convolution: bool) -> bool:
    """Return True if the node itself allows it; of images Inductor may choose another layout than the graph's."""
    value = graphs.tensor(node)
    if not graphs.is_pointwise(node) or len(node.users) < 2 or not value.dtype.is_floating_point:
        return False
    return graphs.is_contiguous(node) and not (convolution and value.dim() == 4)


def _amount(loads: Loads, node: Node) -> float:
    """Return the bytes of loads that are of a node's size, over the node's bytes; smaller ones do not count."""
    whole = [graphs.tensor(load) for load in loads if graphs.tensor(load) is not None and graphs.same_size(load, node)]
    return sum(value.dtype.itemsize for value in whole) / graphs.tensor(node).dtype.itemsize


def _spares(node: Node, saved: Loads, memory: Memory) -> bool:
    """Return True if storing a node spares traffic, or else memory that the graph itself takes."""
    made = frozenset(load for load in saved if load in memory.stored or graphs.is_made_by_library(load))
    return _amount(saved, node) > 2 or _amount(made, node) >= 2


def _saved(node: Node, loads: Loads, memory: Memory, positions: dict[Node, int]) -> Loads:
    """Return the loads for a node that no later one needs but through it."""
    return frozenset(load for load in loads if not _read_later(load, node, memory, positions))


def _read_later(load: Node, node: Node, memory: Memory, positions: dict[Node, int]) -> bool:
    waiting, seen = [load], {load, node}
    while waiting:
        for user in waiting.pop().users:
            if user in seen:
                continue
            seen.add(user)
            loops = graphs.is_pointwise(user) or graphs.is_reduction(user) or user.target in graphs.WHOLE_VIEWS
            if loops and positions[user] > positions[node]:
                return True
            if memory.computed_again(user):
                waiting.append(user)
    return False


class _Readers:
    """Hold the kernels that would compute a node's value, by level: kernels of a level may turn out to be one."""

    def __init__(self, node: Node, memory: Memory, known: dict[Node, Loads], positions: dict[Node, int]):
        self.node, self.memory, self.positions = node, memory, positions
        self.loads = ChainMap[Node, Loads]({}, known)
        self.levels = {node: 0}
        #: The nodes that are computed again with the value in them, and those of them that have its elements in order.
        self.carriers, self.in_order = {node}, {node}
        #: Parts of the value: views, and what is computed again from one.
        self.parts: set[Node] = set()
        self.found: set[int] = set()
        self.last = self._last_user(node)

    def several(self, nodes: list[Node]) -> bool:
        """Return True if there are kernels of more than one level, and those of the first can store the value."""
        for node in nodes[self.positions[self.node] + 1 :]:
            if self.positions[node] > self.last:
                break
            if not self._visit(node):
                return False
        return 0 in self.found and len(self.found) > 1

    def _last_user(self, node: Node) -> int:
        return max((self.positions[user] for user in node.users), default=0)

    def _visit(self, node: Node) -> bool:
        """Return False for a kernel of the first level that cannot store the value."""
        at, loads = level(node, self.levels), inputs_loads(node, self.loads)
        if at is not None:
            self.levels[node] = at
        whole, part = (not has.isdisjoint(node.all_input_nodes) for has in (self.carriers, self.parts))
        if self.memory.computed_again(node) and not self.memory.inductor_stores(node, loads):
            self.loads[node] = loads
            self._carry(node, whole, part)
            return True
        self.loads[node] = frozenset([node])
        if graphs.is_view(node):
            self._carry(node, False, whole or part)
        if not (graphs.is_pointwise(node) or graphs.is_reduction(node)):
            return True
        if whole or (part and self.levels[node] > 0):
            self.found.add(self.levels[node])
        return not whole or self.levels[node] > 0 or self._goes_over_all(node)

    def _carry(self, node: Node, whole: bool, part: bool) -> None:
        if whole or part:
            (self.carriers if whole else self.parts).add(node)
            self.last = max(self.last, self._last_user(node))
        ordered = graphs.keeps_order(node) or graphs.is_pointwise(node)
        if whole and ordered and self._from_in_order(node) and graphs.same_size(node, self.node):
            self.in_order.add(node)

    def _goes_over_all(self, node: Node) -> bool:
        """Return True if a kernel for this node has the value's elements in its loops, in their order."""
        if not self._from_in_order(node):
            return False
        if graphs.is_pointwise(node):
            return graphs.same_size(node, self.node)
        rank, reduced = graphs.tensor(node.args[0]).dim(), graphs.reduced_dimensions(node)
        ends = len(reduced) < rank and reduced == set(range(rank - len(reduced), rank))
        return ends and graphs.reduces_all_seen(node)

    def _from_in_order(self, node: Node) -> bool:
        return not self.in_order.isdisjoint(node.all_input_nodes)
