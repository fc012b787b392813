"""Put a comparison, which any kernel may compute, in the place of a scatter of one element into each row of a constant.

The gradient of `x.gather(1, ids[:, None])` is the example: zeros as large as x, into which a kernel of its own adds one
element a row, by atomics.  Memory moves all zeros twice before their reader has them.  As
`where(ids == column, gradient, 0)` they are an operation of that reader's, which loads two numbers a row.

It is so along any dimension of which the index has one element: no two elements meet then.  Along others it may be
shorter than the constant, as labels of a symbolic number are, of which a guard says no more than that there are as many
logits: it is padded with what no column has for its number.  What nobody may ask for, an index outside of the row, is
an error of a scatter's kernel and none of a comparison's; Inductor has it so, too, where it scatters a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch.fx import Graph, Node

from ..inductor import graphs
from ..inductor.graphs import aten
from ..support.error_boundary import attempt
from .diagonal_by_comparison import diagonal_by_comparison
from .made import Made, replace
from .windows_in_place import windows_in_place

_SCATTERS = {aten.scatter_add.default, aten.scatter.src}


def scatter_by_comparison(graph: Graph) -> Iterator[str]:
    """Put comparisons in the place of scatters, into diagonals too, and sums of windows; yields a line about each."""
    for node in list(graph.nodes):
        with attempt(node.name):
            scatter = _scatter(node)
            if scatter is not None and replace(graph, node, partial(_comparison, scatter)):
                yield f"{graphs.place(node)}: one element a row, found by its index and not by a kernel of its own"
    yield from diagonal_by_comparison(graph)
    yield from windows_in_place(graph)


@dataclass(frozen=True)
class _Scatter:
    """Hold a scatter of one element along a dimension into a constant; shorter: where the index ends before that."""

    node: Node
    constant: bool | int | float
    dimension: int
    index: Node
    source: Node
    shorter: frozenset[int]


def _scatter(node: Node) -> _Scatter | None:
    """Return what a node scatters; None where it does not, or elements may meet."""
    if node.target not in _SCATTERS:
        return None
    base, dim, index, source = (graphs.argument(node, name) for name in ("self", "dim", "index", "src"))
    if graphs.filling(base) is None:
        return None
    if node.target is aten.scatter_add.default and base.args[1] != 0:
        return None
    value = graphs.tensor(node)
    if not graphs.may_be_selected(value):
        return None
    rank = value.dim()
    dimension = dim % rank if rank else 0
    if not rank or not _goes_once(graphs.tensor(index), graphs.tensor(source), value, dimension):
        return None
    pairs = enumerate(zip(graphs.tensor(index).shape, value.shape, strict=True))
    shorter = frozenset(d for d, (one, other) in pairs if d != dimension and not graphs.known(one == other))
    return _Scatter(node, base.args[1], dimension, index, source, shorter)


def _goes_once(index: torch.Tensor, source: torch.Tensor, value: torch.Tensor, dimension: int) -> bool:
    """Return True if an index has one element along a dimension, no more than the value of others, and all sources."""
    lengths = [1 if d == dimension else length for d, length in enumerate(value.shape)]
    inside = all(graphs.known(one <= other) for one, other in zip(index.shape, lengths, strict=True))
    same = all(graphs.known(one == other) for one, other in zip(index.shape, source.shape, strict=True))
    return inside and same and graphs.known(index.shape[dimension] == 1)


def _comparison(scatter: _Scatter, made: Made) -> Node:
    """Return a node with a scatter's result."""
    value, shape = graphs.tensor(scatter.node), graphs.argument(scatter.node, "self").args[0]
    place = made.places(shape, scatter.dimension, value)
    found = made.call(aten.eq.Tensor, made.padded(scatter.index, shape, scatter.shorter, -1), place)
    return made.where(found, _placed(made, scatter), scatter.constant, value)


def _placed(made: Made, scatter: _Scatter) -> Node:
    """Return what is in a scatter's place: a float that is added to 0.0 is never -0.0."""
    source = made.padded(scatter.source, graphs.argument(scatter.node, "self").args[0], scatter.shorter, 0)
    if scatter.node.target is aten.scatter.src or not graphs.tensor(scatter.node).is_floating_point():
        return source
    return made.call(aten.add.Tensor, source, scatter.constant)
