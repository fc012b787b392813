"""Reduces the pieces of a concatenation one with another, where all that is read of it is reduced over them.

The sum of several tensors is often written as `torch.stack(tensors).sum(0)`, the logarithm of a mixture of
distributions as `torch.logsumexp(torch.stack([p, q]), 0)`.  Inductor stores the stack where a piece is made of the
result of a reduction, as a log_softmax is, or where there are more than eight: a stack of logits in float32 is larger
than all else of its graph.  As `p + q`, and for the other `maximum(p, q)` and `exp(p - m) + exp(q - m)`, each piece is
computed where it is needed.

What stands between the concatenation and a reduction may be pointwise, or a view that keeps the dimension of the
pieces: each has one copy for each index then.  If anything else reads a part of it, the concatenation stays, as it does
where it is saved for the backward.

Numbers of 16 bits are added in float32 and rounded once, as in the loop of a reduction.  One lane reduces a piece of
several elements, and reads what it is made of from memory.  So no such piece is reduced if anything else reads 16-bit
numbers that it is made of: that might be in the kernel of the lane, and get them rounded, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import reduce

import torch
from torch.fx import Graph, Node

from ..inductor import graphs
from ..inductor.graphs import aten
from ..support.error_boundary import attempt
from . import slice_propagation
from .made import Made
from .slice_propagation import Move

#: Elements of which each gets its own copy of what is computed.  The layers of a large model of speech are 25.
MOST_ELEMENTS = 32

#: Views that may give the pieces of a concatenation a dimension of their own: torch writes a stack so.
_RESHAPED = {aten.view.default, aten.reshape.default, aten._unsafe_view.default}

#: How two elements become one, by the reduction.
_COMBINED = {
    aten.sum.dim_IntList: aten.add.Tensor,
    aten.mean.dim: aten.add.Tensor,
    aten.amax.default: aten.maximum.default,
    aten.amin.default: aten.minimum.default,
}


def reduce_pieces(graph: Graph) -> Iterator[str]:
    """Reduce pieces without their concatenation; yields a line about each."""
    for node in list(graph.nodes):
        with attempt(node.name):
            found = None if graphs.is_erased(node) else _find_reduced(node)
            if found is not None and _Copies(graph, found).replaced():
                yield f"{graphs.place(node)}: {found.length} elements are reduced as they are computed, and not stored"


@dataclass
class _Reduced:
    """Hold a concatenation, of which all is reduced over the elements of its pieces.

    length: elements of the dimension; where: the nodes with a value for each index, and the dimension of the indices,
    first the one that all others are computed from; moved: those that compute, with what they need; ends: reductions.
    """

    node: Node
    length: int
    where: dict[Node, int]
    moved: dict[Node, Move] = field(default_factory=dict)
    ends: list[Node] = field(default_factory=list)


def _find_reduced(node: Node) -> _Reduced | None:
    """Return a concatenation of which all that is read is reduced over its pieces; None for other nodes."""
    if node.target is not aten.cat.default or not node.users:
        return None
    alike = all(_is_alike(piece, node) for piece in node.args[0])
    found = (_as_stack(node) or _as_row(node)) if alike else None
    if found is None or not 1 < found.length <= MOST_ELEMENTS or (node in found.where and _rounds_more(node)):
        return None
    later, changed = node.next, False
    while not graphs.is_result(later):
        reads = not found.where.keys().isdisjoint(later.all_input_nodes)
        # A piece may be what is changed: it is read later than before.
        if reads and (changed or not _add(later, found)):
            return None
        changed |= graphs.may_change_tensors(later)
        later = later.next
    return found if found.ends and found.where.keys().isdisjoint(later.all_input_nodes) else None


def _is_alike(piece: Node, node: Node) -> bool:
    """Return True for a piece that has the dtype and the number of dimensions of the whole."""
    whole, value = graphs.tensor(node), graphs.tensor(piece)
    return value.dtype == whole.dtype and value.dim() == whole.dim()


def _dimension(node: Node) -> int:
    return graphs.argument(node, "dim") % graphs.tensor(node).dim()


def _lengths(node: Node) -> list[graphs.Size]:
    """Return how much each piece of a concatenation has of its dimension."""
    return [graphs.tensor(piece).shape[_dimension(node)] for piece in node.args[0]]


def _as_row(node: Node) -> _Reduced | None:
    """Return a concatenation whose indices are the elements of all pieces, if their number is known."""
    lengths = _lengths(node)
    known = all(isinstance(length, int) for length in lengths)
    return _Reduced(node, sum(lengths), {node: _dimension(node)}) if known else None


def _rounds_more(node: Node) -> bool:
    """Return True if others read a 16-bit value that pieces of several elements are made of, and may get it rounded."""
    made: set[Node] = set()
    for piece, length in zip(node.args[0], _lengths(node), strict=True):
        made |= _computed_with(piece) if length != 1 else set()
    inside = made | {node}
    return any(_has_more_digits(value) and not inside.issuperset(value.users) for value in made)


def _computed_with(piece: Node) -> set[Node]:
    """Return a piece and those of what it is made of that have an element for each of its own."""
    found, left = set[Node](), [piece]
    while left:
        node = left.pop()
        if node in found or not graphs.same_size(node, piece):
            continue
        found.add(node)
        left += graphs.tensor_inputs(node) if graphs.is_pointwise(node) or graphs.is_view(node) else []
    return found


def _has_more_digits(node: Node) -> bool:
    """Return True if the kernel that computes a value has more digits of it than a buffer."""
    if graphs.is_view(node):
        return any(map(_has_more_digits, graphs.tensor_inputs(node)))
    in_memory = graphs.is_input(node) or graphs.is_made_by_library(node) or graphs.is_rounded(node)
    return graphs.is_computed_wider(node) and not in_memory


def _as_stack(node: Node) -> _Reduced | None:
    """Return a concatenation whose indices are its pieces, by a view that gives them a dimension of their own."""
    view, lengths, before = next(iter(node.users)), _lengths(node), graphs.tensor(node).shape[: _dimension(node)]
    if view.target not in _RESHAPED or len(node.users) > 1:
        return None
    if not all(graphs.known(length == lengths[0]) for length in lengths):
        return None
    shape = graphs.tensor(view).shape
    places = (at for at, size in enumerate(shape) if isinstance(size, int) and size == len(lengths))
    place = next((at for at in places if graphs.known(math.prod(shape[:at]) == math.prod(before))), None)
    return _Reduced(node, len(lengths), {view: place}) if place is not None else None


def _add(node: Node, found: _Reduced) -> bool:
    """Return True where a reader of values for each index is added to what is reduced; else it needs them stored."""
    if graphs.is_reduction(node):
        found.ends += [node] if _is_end(node, found) else []
        return node in found.ends
    value = graphs.tensor(node)
    if value is None or not (graphs.is_pointwise(node) or graphs.is_view(node)):
        return False
    for dimension in range(value.dim()):
        move = slice_propagation.move(node, dimension, 1)
        if move is not None and _keeps_indices(node, move, found):
            found.where[node], found.moved[node] = dimension, move
            return True
    return False


def _is_end(node: Node, found: _Reduced) -> bool:
    """Return True for a reduction over the indices alone, of floating point numbers that Inductor computes with."""
    source, dtype = node.args[0], graphs.tensor(node).dtype if graphs.tensor(node) is not None else None
    if node.target not in _COMBINED or dtype is None or not dtype.is_floating_point or dtype.itemsize < 2:
        return False
    return source in found.where and graphs.reduced_dimensions(node) == {found.where[source]}


def _keeps_indices(node: Node, move: Move, found: _Reduced) -> bool:
    """Return True if an index of the result needs the same index of each input that has a value for each."""
    needs = dict(move.needs)
    return all(needs.get(source) == found.where[source] for source in node.all_input_nodes if source in found.where)


class _Copies:
    """Hold copies of what is computed for each index.  nodes: all that are new, in order."""

    def __init__(self, graph: Graph, found: _Reduced):
        self.graph, self.found = graph, found
        self.nodes: list[Node] = []
        self.copies = dict[Node, list[Node]]()
        self.slices: dict[tuple[Node, int, int], Node] = {}

    def replaced(self) -> bool:
        """Return True where reductions of pieces are in the place of others; changes nothing where strides differ."""
        with ExitStack() as undo:
            undo.callback(Made(self.graph, self.found.node, self.nodes).erase)
            first = next(iter(self.found.where))
            self.copies[first] = list(self._elements(Made(self.graph, first, self.nodes)))
            for node, move in self.found.moved.items():
                made = Made(self.graph, node, self.nodes)
                self.copies[node] = [self._copy(made, move, index) for index in range(self.found.length)]
            results = {end: self._result(Made(self.graph, end, self.nodes)) for end in self.found.ends}
            if any(graphs.tensor(new).stride() != graphs.tensor(end).stride() for end, new in results.items()):
                return False
            undo.pop_all()
        for end, new in results.items():
            end.replace_all_uses_with(new)
        unused = {self.found.node, *self.found.where, *self.found.ends}
        for node in reversed([node for node in self.graph.nodes if node in unused]):
            self.graph.erase_node(node)
        return True

    def _elements(self, made: Made) -> Iterator[Node]:
        """Give what has one index of the dimension each."""
        node, dimension = self.found.node, _dimension(self.found.node)
        for piece in node.args[0]:
            length = graphs.tensor(piece).shape[dimension]
            if made.before is not node:
                place = self.found.where[made.before]
                sizes = [1 if at == place else size for at, size in enumerate(made.before.args[1])]
                yield made.call(aten.reshape.default, piece, sizes)
            elif length == 1:
                yield piece
            else:
                yield from (made.call(aten.slice.Tensor, piece, dimension, at, at + 1) for at in range(length))

    def _copy(self, made: Made, move: Move, index: int) -> Node:
        node = made.before
        inputs = {source: self._input(made, source, dim, index) for source, dim in move.needs}
        args = move.arguments(torch.fx.map_arg(node.args, lambda source: inputs.get(source, source)))
        kwargs = torch.fx.map_arg(node.kwargs, lambda source: inputs.get(source, source))
        return made.call(node.target, *args, **kwargs)

    def _input(self, made: Made, source: Node, dim: int | None, index: int) -> Node:
        if source in self.copies:
            return self.copies[source][index]
        if dim is None:
            return source
        place = (source, dim, index)
        if place not in self.slices:
            self.slices[place] = made.call(aten.slice.Tensor, source, dim, index, index + 1)
        return self.slices[place]

    def _result(self, made: Made) -> Node:
        """Return the node that has the value of a reduction."""
        end = made.before
        source, dtype = end.args[0], graphs.tensor(end).dtype
        wide = torch.float32 if dtype.itemsize == 2 and _COMBINED[end.target] is aten.add.Tensor else dtype
        elements = [_converted(made, element, wide) for element in self.copies[source]]
        value = reduce(lambda one, other: made.call(_COMBINED[end.target], one, other), elements)
        if end.target is aten.mean.dim:
            value = made.call(aten.div.Tensor, value, self.found.length)
        value = _converted(made, value, dtype)
        return value if graphs.keeps_dimensions(end) else made.call(aten.squeeze.dim, value, self.found.where[source])


def _converted(made: Made, node: Node, dtype: torch.dtype) -> Node:
    convert = torch.ops.prims.convert_element_type.default
    return node if graphs.tensor(node).dtype == dtype else made.call(convert, node, dtype)
