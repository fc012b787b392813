"""Computes what is read of a value, and no more: a slice moves above the operations whose result it takes a part of.

The example is the last norm of a language model, of which one row is used: `norm(x)[:, -1:] @ w` becomes
`norm(x[:, -1:]) @ w`.  Inductor computes a part of a pointwise value where it is needed, but a reduction whole, and so
whatever a library call takes a part of.

A slice of a dimension may pass an operation that computes each index of that dimension by itself: a pointwise
operation, a reduction of other dimensions, a view that keeps the dimension.  The first elements of a dimension pass a
scan along it, too: nothing after them is needed for `cumprod(x)[:, :-1]`.  A slice of what is padded is another
padding: the gradients of shifted rows, which Inductor adds up in rows as long as all shifts need, are then in the rows
that are left of them, and need not be stored before.  An operation is moved below the slice only
if all that is read of it is that slice; so nothing is computed twice.  What random numbers make, or an operation that
changes a tensor, is none of these.  Each moved operation stays where it was in the graph's order, so a tensor that is
changed later is read before that still.

A kernel more is not worth a smaller domain.  Where a tensor at the upper end is read by others that may be in one
kernel with the operations, their domain stays as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from torch.fx import Graph, Node
from torch.fx.node import Argument

from ..inductor import graphs
from ..inductor.graphs import aten
from ..support.error_boundary import attempt, try_step
from . import slice_propagation
from .loads import level, needed_in_memory
from .slice_propagation import Move


@dataclass(frozen=True)
class Slice:
    """Hold what takes a part of a dimension: that of its source, and the arguments of a slice of the same elements."""

    node: Node
    source: Node
    dimension: int
    bounds: tuple[int | None, ...]

    @property
    def length(self) -> graphs.Size:
        """Return the number of elements that are left of the dimension."""
        return 1 if self.node.target is aten.select.int else graphs.tensor(self.node).shape[self.dimension]

    @property
    def start(self) -> int | None:
        """Return the first element that it has, where one follows the other and that is known; else None."""
        first, step = self.bounds[0] or 0, self.bounds[-1]
        if len(self.bounds) != 3 or step not in (None, 1):
            return None
        whole = self.whole
        if first >= 0:
            return first
        return max(first + whole, 0) if isinstance(whole, int) else None

    @property
    def whole(self) -> graphs.Size:
        """Return the number of elements of the dimension."""
        return graphs.tensor(self.source).shape[self.dimension]


@dataclass
class Domain:
    """Hold operations to be computed for a slice only; moved: each with what it needs then, in the graph's order."""

    slice: Slice
    moved: dict[Node, Move] = field(default_factory=dict)

    @property
    def above(self) -> set[tuple[Node, int]]:
        """Return the tensors that get a slice of their own, with its dimension."""
        return {
            (source, dim)
            for move in self.moved.values()
            for source, dim in move.needs
            if dim is not None and source not in self.moved
        }


def shrink_domains(graph: Graph) -> Iterator[str]:
    """Shrink what can be shrunk and pays; yields a line about each."""
    nodes = list(graph.nodes)
    # Each slice once: those that are made on the way have arrived where they stay.
    for node in [node for node in nodes if try_step(partial(_as_slice, node), None, node.name) is not None]:
        with attempt(node.name):
            yield from _shrink_domain(graph, node, nodes)
        nodes = list(graph.nodes)


def _shrink_domain(graph: Graph, node: Node, nodes: list[Node]) -> Iterator[str]:
    domain = None if graphs.is_erased(node) else _find_domain(node, nodes)
    if domain is None:
        return
    done, whole = domain.slice.length, domain.slice.whole
    line = f"{graphs.place(node)}: {len(domain.moved)} operations work on {done} of {whole} indices"
    if _shrink(graph, domain):
        yield line


def _find_domain(node: Node, nodes: list[Node]) -> Domain | None:
    """Return what is to be computed for a slice only, if anything can be, and pays; changes nothing."""
    found = _as_slice(node)
    if found is None or graphs.known(found.length == found.whole) or _depends_on_strides(node):
        return None
    domain = _above(found, nodes)
    if all(map(graphs.is_view, domain.moved)):
        return None
    in_memory = needed_in_memory(nodes)
    pays = node in in_memory or _has_kernel(domain)
    return domain if pays and not _would_part(domain, nodes, in_memory) else None


def _has_kernel(domain: Domain) -> bool:
    """Return True if a value above the slice has a kernel of its own: a reduction, or a sum that may be stored."""
    paddings = [move for move in domain.moved.values() if move.pads is not None]
    return len(paddings) > 1 or any(graphs.is_reduction(moved) or graphs.is_scan(moved) for moved in domain.moved)


def _as_slice(node: Node) -> Slice | None:
    """Return a node that takes a part of one dimension, at places that the graph knows; else None."""
    if node.target is aten.constant_pad_nd.default:
        return _as_cut(node)
    if node.target not in (aten.select.int, aten.slice.Tensor):
        return None
    source, dim = node.args[0], graphs.argument(node, "dim")
    if node.target is aten.select.int:
        index = graphs.argument(node, "index")
        bounds = (index, sys.maxsize if index == -1 else index + 1, 1) if isinstance(index, int) else (index,)
    else:
        bounds = tuple(graphs.argument(node, name) for name in ("start", "end", "step"))
    known = all(bound is None or isinstance(bound, int) for bound in bounds)
    if not known or graphs.tensor(source) is None or "unbacked_bindings" in node.meta:
        return None
    return Slice(node, source, dim % graphs.tensor(source).dim(), bounds)


def _as_cut(node: Node) -> Slice | None:
    """Return what cuts off elements of one dimension, as the gradient of a padding does; else None."""
    source, amounts = node.args[0], list(graphs.argument(node, "pad"))
    cut = {n // 2 for n, amount in enumerate(amounts) if amount != 0}
    if len(cut) != 1 or not all(isinstance(amount, int) and amount <= 0 for amount in amounts):
        return None
    (last,) = cut
    dim = graphs.tensor(source).dim() - 1 - last
    bounds = (-amounts[2 * last], amounts[2 * last + 1] or None, 1)  # Negative ends are counted from the last one.
    return Slice(node, source, dim, bounds)


def _depends_on_strides(node: Node) -> bool:
    """Return True if somebody sees that a slice has the strides of the whole: the user does, of the graph's results."""
    if not graphs.is_view(node):
        return False  # A copy has strides of its own, which _shrink compares.
    return any(graphs.sees_strides(user) or (graphs.is_view(user) and _depends_on_strides(user)) for user in node.users)


def _above(found: Slice, nodes: list[Node]) -> Domain:
    """Return the operations above a slice of which only that slice is read: nothing is moved where there are none."""
    needed: dict[Node, set[int | None]] = {found.source: {found.dimension}}
    inside, moved, position = {found.node}, dict[Node, Move](), nodes.index(found.node)
    while needed and position:
        position -= 1
        node = nodes[position]
        dims = needed.pop(node, None)
        move = None
        if dims is not None and len(dims) == 1 and inside.issuperset(node.users):
            move = slice_propagation.move(node, next(iter(dims)), found.length, found.start)
        if move is None:
            continue
        inside.add(node)
        moved[node] = move
        for source, dim in move.needs:
            needed.setdefault(source, set()).add(dim)
    domain = Domain(found, dict(reversed(moved.items())))
    # Several values at once have no slice.
    return domain if all(graphs.tensor(source) is not None for source, _ in domain.above) else Domain(found)


def _would_part(domain: Domain, nodes: list[Node], in_memory: set[Node]) -> bool:
    """Return True if a kernel that reads a tensor at the upper end for others might have had the operations."""
    return any(_shares_kernel(source, domain, nodes, in_memory) for source, _ in domain.above)


def _shares_kernel(source: Node, domain: Domain, nodes: list[Node], in_memory: set[Node]) -> bool:
    levels, flows, others = {source: 0}, {source}, set[int]()
    ours = {domain.slice.node, *domain.moved}
    for node in nodes[nodes.index(source) + 1 :]:
        at = level(node, levels)
        if at is None:
            continue
        levels[node] = at
        if node in ours or flows.isdisjoint(node.all_input_nodes):
            continue
        if graphs.is_pointwise(node) or graphs.is_reduction(node):
            others.add(at)
        if graphs.is_view(node) or (graphs.is_pointwise(node) and node not in in_memory):
            flows.add(node)
    return levels[domain.slice.source] in others


def _shrink(graph: Graph, domain: Domain) -> bool:
    """Return True if copies that work on the slice are in the operations' place; else changes nothing."""
    copies, node = _Copies(graph, domain), domain.slice.node
    with ExitStack() as undo:
        undo.callback(copies.erase)
        last = copies.result()
        if not graphs.is_view(node) and graphs.tensor(last).stride() != graphs.tensor(node).stride():
            return False
        undo.pop_all()
    node.replace_all_uses_with(last)
    for moved in [node, *reversed(domain.moved)]:
        graph.erase_node(moved)
    return True


class _Copies:
    """Hold copies of the operations, each before its original; made: all nodes that are new."""

    def __init__(self, graph: Graph, domain: Domain):
        self.graph, self.slice, self.moved = graph, domain.slice, domain.moved
        self.made: list[Node] = []
        self.copies: dict[Node, Node] = {}
        self.slices: dict[tuple[Node, int], Node] = {}

    def result(self) -> Node:
        """Return the node that has the slice's value."""
        for node, move in self.moved.items():
            with self.graph.inserting_before(node):
                self.copies[node] = self._copy(node, move)
        last = self.copies[self.slice.source]
        if self.slice.node.target is not aten.select.int:
            return last
        with self.graph.inserting_before(self.slice.node):
            return self._call(aten.select.int, last, self.slice.dimension, 0)

    def erase(self) -> None:
        """Take the new nodes out of the graph."""
        for node in reversed(self.made):
            self.graph.erase_node(node)

    def _copy(self, node: Node, move: Move) -> Node:
        inputs = {source: self._input(source, dim) for source, dim in move.needs}
        if move.pads is not None:
            (source,) = inputs.values()
            if not any(move.pads.amounts):
                return source
            return self._call(aten.constant_pad_nd.default, source, list(move.pads.amounts), move.pads.value)
        copy = self.graph.node_copy(node, lambda source: inputs.get(source, source))
        self.made.append(copy)
        copy.args = move.arguments(copy.args)
        return graphs.retrace(copy)

    def _input(self, source: Node, dim: int | None) -> Node:
        if dim is None or source in self.moved:
            return self.copies.get(source, source)
        if (source, dim) not in self.slices:
            self.slices[source, dim] = self._call(aten.slice.Tensor, source, dim, *self.slice.bounds)
        return self.slices[source, dim]

    def _call(self, target: Callable[..., object], *args: Argument) -> Node:
        self.made.append(self.graph.call_function(target, args))
        self.made[-1].meta = dict(self.slice.node.meta)
        return graphs.retrace(self.made[-1])
