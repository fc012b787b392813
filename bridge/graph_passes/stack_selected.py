"""Put a concatenation in the place of a sum of tensors that are zeros but for an element along a dimension.

The gradient of a parameter that is read as `w[0]`, `w[1]` and so on, as the taps of a convolution or the mixtures of a
token shift are, is the example: for each of them zeros as large as w, with the gradient of that row, and the sum of
these.  A kernel of its own adds them up: it waits for the sums of all rows, and loads each of them for each row.  As a
concatenation of the rows, each sum is stored where it belongs.

It is so where the rows are sums themselves and fill all places: what is computed element by element is added up in the
kernel that computes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from torch.fx import Graph, Node

from ..inductor import graphs
from ..inductor.graphs import aten
from ..support.error_boundary import attempt
from .made import Made, erase_unread, replace

#: Pieces of a concatenation, at most: each is a store of its own.
MOST_PIECES = 16


@dataclass(frozen=True)
class _Stacked:
    """Hold a sum of what was selected: rows by their place along a dimension; read: nodes that nothing else reads."""

    node: Node
    dimension: int
    rows: dict[int, Node]
    read: list[Node]


def stack_selected(graph: Graph) -> Iterator[str]:
    """Put concatenations in the place of sums; yields a line about each."""
    for node in reversed(list(graph.nodes)):
        with attempt(node.name):
            stacked = None if graphs.is_erased(node) else _stacked(node)
            if stacked is not None and replace(graph, node, partial(_concatenation, stacked)):
                erase_unread(stacked.read)
                yield f"{graphs.place(node)}: {len(stacked.rows)} sums are stored where they belong, and not added up"


def _stacked(node: Node) -> _Stacked | None:
    """Return what a node adds up; None where that is anything else than sums in other places of zeros."""
    if node.target is not aten.add.Tensor:
        return None
    terms, sums = _terms(node)
    if len(terms) < 2:
        return None
    shape, rank = graphs.tensor(node).shape, graphs.tensor(node).dim()
    dimensions = {graphs.argument(term, "dim") % rank for term in terms}
    if len(dimensions) > 1 or not graphs.has_number_sizes(node):
        return None
    (dimension,) = dimensions
    rows = {graphs.argument(term, "index") % shape[dimension]: graphs.argument(term, "src") for term in terms}
    alike = all(graphs.tensor(term).shape == shape and _is_of(term, node) for term in terms)
    filled = len(rows) == len(terms) == shape[dimension] <= MOST_PIECES
    return _Stacked(node, dimension, rows, [*terms, *sums]) if alike and filled else None


def _terms(node: Node) -> tuple[list[Node], list[Node]]:
    """Return (the zeros with a sum each that a node adds up, the sums of some of them that it is made from).

    Nothing where it adds anything else, or too many.
    """
    terms, sums, left = list[Node](), list[Node](), [node]
    for _ in range(2 * MOST_PIECES):
        if not left:
            return terms, sums[1:]
        one = left.pop()
        if _adds_alone(one, node):
            sums.append(one)
            left += one.all_input_nodes
        elif _is_placed(one):
            terms.append(one)
        else:
            break
    return [], []


def _adds_alone(node: Node, last: Node) -> bool:
    """Return True for a node that adds two others, and is the last one or read by one node alone."""
    adds = node.target is aten.add.Tensor and not node.kwargs and len(node.all_input_nodes) == 2
    return adds and (node is last or len(node.users) == 1)


def _is_placed(node: Node) -> bool:
    """Return True for zeros with a sum in an element along a dimension, which nothing else reads."""
    if node.target is not aten.select_scatter.default or len(node.users) > 1:
        return False
    source = graphs.without_form(graphs.argument(node, "src"))
    return graphs.filling(graphs.argument(node, "self")) == 0 and graphs.is_reduction(source)


def _is_of(term: Node, node: Node) -> bool:
    """Return True if a term and its source have the dtype of the sum, a floating-point one."""
    dtype = graphs.tensor(node).dtype
    same = graphs.tensor(term).dtype == dtype == graphs.tensor(graphs.argument(term, "src")).dtype
    return same and dtype.is_floating_point


def _concatenation(stacked: _Stacked, made: Made) -> Node:
    """Return a node with the rows in their places.  A row was added to the zeros of others, and never is -0.0."""
    rows = [made.call(aten.add.Tensor, stacked.rows[place], 0) for place in sorted(stacked.rows)]
    pieces = [made.call(aten.unsqueeze.default, row, stacked.dimension) for row in rows]
    return made.call(aten.cat.default, pieces, stacked.dimension)
