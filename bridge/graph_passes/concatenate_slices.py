"""Put a concatenation in the place of slices that are written one after the other, where they fill a tensor.

Rotary embeddings are often written as `out = torch.empty_like(x); out[..., :h] = a; out[..., h:] = b`.  In the graph
each assignment is a new tensor, with the slice in it replaced.  From torch 2.15 on Inductor has them copied into the
tensor one by one, and what is copied so is in no kernel with anything else.  Of a concatenation the pieces are computed
where they are stored.

It is so only where the slices fill the tensor without gaps and do not overlap, for all sizes that the guards admit, and
nothing reads the tensor in between.  A piece that a library call makes stays as it is: as a copy its memory is free
after it, and a concatenation needs all pieces at a time.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import torch
from torch.fx import Graph, Node

from ..inductor import graphs
from ..inductor.graphs import aten
from ..support.error_boundary import attempt
from .made import erase_unread
from .stack_selected import stack_selected


def concatenate_slices(graph: Graph) -> Iterator[str]:
    """Put concatenations in the place of slices; yields a line about each."""
    for node in list(graph.nodes):
        with attempt(node.name):
            filled = _filled(node)
            if filled is not None and _replace(graph, filled):
                yield f"{graphs.place(node)}: {len(filled.pieces)} slices that fill a tensor are its pieces"
    yield from stack_selected(graph)


@dataclass(frozen=True)
class _Filled:
    """Hold how slices along a dimension fill a tensor.

    node: the tensor; steps: the nodes that write a slice each, in order; pieces: what they write, by place.
    """

    node: Node
    dimension: int
    steps: tuple[Node, ...]
    pieces: tuple[Node, ...]


def _filled(node: Node) -> _Filled | None:
    """Return how slices fill a tensor whose last slice a node writes; None where they do not, or something reads it."""
    if not _writes_slice(node) or any(_writes_slice(user) and user.args[0] is node for user in node.users):
        return None
    steps = list(reversed(list(_steps(node))))
    dimensions = {graphs.argument(step, "dim") % graphs.tensor(step).dim() for step in steps}
    if len(steps) < 2 or len(dimensions) > 1:
        return None
    (dimension,) = dimensions
    pieces = _in_order(steps, dimension)
    if pieces is None or not all(map(_is_computed, pieces)):
        return None
    readers = {user for step in steps[:-1] for user in step.users}.difference(steps)
    if not all(map(_reads_nothing, readers)) or _something_changes(steps):
        return None
    return _Filled(node, dimension, tuple(steps), tuple(pieces))


def _writes_slice(node: Node) -> bool:
    """Return True for a node that gives a tensor with elements of a slice, side by side, replaced."""
    return node.target is aten.slice_scatter.default and graphs.argument(node, "step") == 1


def _steps(node: Node) -> Iterator[Node]:
    """Return the nodes that write slices of one tensor, the last one first."""
    while isinstance(node, Node) and _writes_slice(node):
        yield node
        node = node.args[0]


def _in_order(steps: list[Node], dimension: int) -> list[Node] | None:
    """Return what is written, in the order of the places; None where there is a gap, or two write to one place."""
    waiting, pieces, end = list(steps), list[Node](), 0
    while waiting:
        following = [step for step in waiting if graphs.known(_start(step, dimension) == end)]
        if len(following) != 1:
            return None
        waiting.remove(following[0])
        pieces.append(following[0].args[1])
        end = end + graphs.tensor(pieces[-1]).shape[dimension]
    return pieces if graphs.known(end == graphs.tensor(steps[-1]).shape[dimension]) else None


def _start(step: Node, dimension: int) -> graphs.Size:
    """Return the index at which a slice begins."""
    start = graphs.argument(step, "start")
    start = start.meta["val"] if isinstance(start, Node) else start or 0
    return start + graphs.tensor(step).shape[dimension] if graphs.known(start < 0) else start


def _is_computed(piece: Node) -> bool:
    """Return True for a piece that a kernel of loops may compute where it is stored."""
    written = _copied(piece)
    if graphs.tensor(written) is None or graphs.tensor(written).device != graphs.tensor(piece).device:
        return False
    return _same_shape(written, piece) and not graphs.is_made_by_library(graphs.without_views(written))


def _copied(piece: Node) -> Node:
    """Return what an assignment writes: its other argument says only where, of which shape and of which type."""
    return piece.args[1] if piece.target is aten.copy.default else piece


def _same_shape(one: Node, other: Node) -> bool:
    shapes = [graphs.tensor(node).shape for node in (one, other)]
    return len(shapes[0]) == len(shapes[1]) and all(map(graphs.known, map(operator.eq, *shapes)))


def _something_changes(steps: list[Node]) -> bool:
    """Return True if a tensor may be changed between the first slice that is written and the last: a piece might be."""
    node = steps[0]
    while node is not steps[-1]:
        node = node.next
        if graphs.may_change_tensors(node):
            return True
    return False


def _reads_nothing(node: Node) -> bool:
    """Return True for a view that no value depends on: it says where an assignment writes."""
    if not graphs.is_view(node):
        return False
    return all(_is_place(user, node) or _reads_nothing(user) for user in node.users)


def _is_place(user: Node, view: Node) -> bool:
    return user.target is aten.copy.default and user.args[0] is view and user.args[1] is not view


def _replace(graph: Graph, filled: _Filled) -> bool:
    """Return True where a concatenation is in the place of slices; changes nothing where its strides would differ."""
    made = list[Node]()
    with ExitStack() as undo:
        undo.callback(erase_unread, made)
        with graph.inserting_before(filled.node):
            pieces = [_piece(graph, piece, graphs.tensor(filled.node).dtype, made) for piece in filled.pieces]
            made.append(graph.call_function(aten.cat.default, (pieces, filled.dimension)))
        made[-1].meta = dict(filled.node.meta)
        if graphs.tensor(graphs.retrace(made[-1])).stride() != graphs.tensor(filled.node).stride():
            return False
        undo.pop_all()
    filled.node.replace_all_uses_with(made[-1])
    erase_unread(_writers(filled))
    return True


def _piece(graph: Graph, piece: Node, dtype: torch.dtype, made: list[Node]) -> Node:
    """Return a node with what an assignment writes, in the tensor's type; made: gets the nodes that are new.

    A copy has the type of the place.  What `torch.slice_scatter` is called with may have another one than its tensor.
    """
    node = _copied(piece)
    for wanted in (graphs.tensor(piece).dtype, dtype):
        if graphs.tensor(node).dtype != wanted:
            made.append(graph.call_function(torch.ops.prims.convert_element_type.default, (node, wanted)))
            made[-1].meta = dict(piece.meta)
            node = graphs.retrace(made[-1])
    return node


def _writers(filled: _Filled) -> set[Node]:
    """Return the nodes that write slices, what says where, and copies."""
    wholes = {*filled.steps, filled.steps[0].args[0]}
    copies = {piece for piece in filled.pieces if piece.target is aten.copy.default}
    places = {copy.args[0] for copy in copies}
    unused = {user for whole in wholes for user in whole.users if graphs.is_view(user)}
    return {*filled.steps, *copies, *places, *unused}
