"""Put a comparison, which any kernel may compute, in the place of a scatter into the diagonal of a constant.

The gradient of `x.diagonal()` is the example: zeros as large as x, into whose diagonal a kernel of its own stores.
Memory moves all zeros twice before their reader has them, and no kernel is fused across the store.  As
`where(row == column, gradient, 0)` they are an operation of that reader's, which loads one number a row.

It is so for a diagonal that goes through all of the rows, or of the columns.  Into other tensors a scatter may store in
place, and moves nothing but the diagonal.
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
from .made import Made, replace


def diagonal_by_comparison(graph: Graph) -> Iterator[str]:
    """Put comparisons in the place of scatters into diagonals; yields a line about each."""
    for node in list(graph.nodes):
        with attempt(node.name):
            scatter = _scatter(node)
            if scatter is not None and replace(graph, node, partial(_comparison, scatter)):
                yield f"{graphs.place(node)}: a diagonal, found by comparing and not by a kernel of its own"


@dataclass(frozen=True)
class _Scatter:
    """Hold a scatter into the diagonal of a constant, of which the row `i` has an element in the column `i + offset`.

    kept: which of the two dimensions has all elements of the source, dropped: the other one.
    """

    node: Node
    constant: Node
    source: Node
    offset: int
    rows: int
    columns: int
    kept: int
    dropped: int


def _scatter(node: Node) -> _Scatter | None:
    """Return what a node scatters into the diagonal of a constant; None where it does not."""
    if node.target is not aten.diagonal_scatter.default:
        return None
    names = ("self", "src", "offset", "dim1", "dim2")
    base, source, offset, one, other = (graphs.argument(node, name) for name in names)
    if graphs.filling(base) is None:
        return None
    value, length = graphs.tensor(node), graphs.tensor(source).shape[-1]
    if not graphs.may_be_selected(value):
        return None
    rows, columns = one % value.dim(), other % value.dim()
    if offset >= 0 and graphs.known(length == value.shape[rows]):
        return _Scatter(node, base, source, offset, rows, columns, rows, columns)
    if offset <= 0 and graphs.known(length == value.shape[columns]):
        return _Scatter(node, base, source, offset, rows, columns, columns, rows)
    return None


def _comparison(scatter: _Scatter, made: Made) -> Node:
    """Return a node with a scatter's result."""
    value, shape = graphs.tensor(scatter.node), scatter.constant.args[0]
    rows = made.places(shape, scatter.rows, value, start=scatter.offset)
    columns = made.places(shape, scatter.columns, value)
    found = made.call(aten.eq.Tensor, rows, columns)
    return made.where(found, _placed(made, scatter), scatter.constant.args[1], value)


def _placed(made: Made, scatter: _Scatter) -> Node:
    """Return the source with its elements along the dimension that has all of them, in the result's dtype."""
    source, value = scatter.source, graphs.tensor(scatter.node)
    if graphs.tensor(source).dtype != value.dtype:
        source = made.call(torch.ops.prims.convert_element_type.default, source, value.dtype)
    rank = value.dim()
    others = iter(range(rank - 2))
    order = [rank - 2 if d == scatter.kept else next(others) for d in range(rank) if d != scatter.dropped]
    return made.call(aten.unsqueeze.default, made.call(aten.permute.default, source, order), scatter.dropped)
