"""Put comparisons, which any kernel may compute, in the place of a scatter of few elements into each row of a constant.

The gradient of `x.gather(1, ids[:, None])` is the example: zeros as large as x, into which a kernel of its own adds one
element a row, by atomics.  Memory moves all zeros twice before their reader has them.  As
`where(ids == column, gradient, 0)` they are an operation of that reader's, which loads two numbers a row.

The weights of the experts that a router chooses for each token are a few elements a row.  Each takes a comparison, one
after the other, as eager mode places them on a CPU: where two have the same place, they are added up, or the last one
stays.  Each element of the row executes all of these, so only so many are taken as memory would be busy for.

It is so along any dimension.  Along others the index may be shorter than the constant, as labels of a symbolic number
are, of which a guard says no more than that there are as many logits: it is padded with what no column has for its
number.  What nobody may ask for, an index outside of the row, is an error of a scatter's kernel and none of a
comparison's; Inductor has it so, too, where it scatters a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch.fx import Graph, Node
from torch.fx.node import Argument

from .. import inductor
from ..inductor import graphs
from ..inductor.graphs import aten
from ..lowering.triton.profitability import INSTRUCTIONS_A_BYTE, LAUNCH_BYTES
from ..support.error_boundary import attempt
from .diagonal_by_comparison import diagonal_by_comparison
from .made import Made, replace
from .windows_in_place import windows_in_place

_SCATTERS = {aten.scatter_add.default: "src", aten.scatter.src: "src", aten.scatter.value: "value"}

#: Elements of a row, at most: each is two loads.
MOST_ELEMENTS = 8

#: Instructions of each element of the result for each that is scattered into its row: a comparison, a choice, and two
#: loads of what its neighbours load, too.
INSTRUCTIONS = 3.5


def scatter_by_comparison(graph: Graph) -> Iterator[str]:
    """Put comparisons in the place of scatters, into diagonals too, and sums of windows; yields a line about each."""
    for node in list(graph.nodes):
        with attempt(node.name):
            scatter = _scatter(node)
            if scatter is not None and replace(graph, node, partial(_comparison, scatter)):
                elements = "one element" if scatter.length == 1 else f"{scatter.length} elements"
                yield f"{graphs.place(node)}: {elements} a row, found by index and not by a kernel of its own"
    yield from diagonal_by_comparison(graph)
    yield from windows_in_place(graph)


@dataclass(frozen=True)
class _Scatter:
    """Hold a scatter along a dimension into a constant.

    length: of the index along the dimension; source: a node or a number; shorter: where the index ends before that.
    """

    node: Node
    constant: bool | int | float
    dimension: int
    length: int
    index: Node
    source: Argument
    shorter: frozenset[int]


def _scatter(node: Node) -> _Scatter | None:
    """Return what a node scatters; None where it does not, or takes less time as it is."""
    if node.target not in _SCATTERS:
        return None
    names = "self", "dim", "index", _SCATTERS[node.target]
    base, dim, index, source = (graphs.argument(node, name) for name in names)
    if graphs.filling(base) is None:
        return None
    if node.target is aten.scatter_add.default and base.args[1] != 0:
        return None
    value, indices = graphs.tensor(node), graphs.tensor(index)
    rank = value.dim()
    if not rank or not graphs.may_be_selected(value):
        return None
    dimension = dim % rank
    length = 1 if graphs.known(indices.shape[dimension] == 1) else indices.shape[dimension]
    if not _is_inside(indices, source, value, dimension) or not _is_worthwhile(length, value):
        return None
    pairs = enumerate(zip(indices.shape, value.shape, strict=True))
    shorter = frozenset(d for d, (one, other) in pairs if d != dimension and not graphs.known(one == other))
    return _Scatter(node, base.args[1], dimension, length, index, source, shorter)


def _is_inside(index: torch.Tensor, source: Argument, value: torch.Tensor, dimension: int) -> bool:
    """Return True if an index has no more elements than the value along other dimensions, and all of the source's."""
    pairs = enumerate(zip(index.shape, value.shape, strict=True))
    inside = all(d == dimension or graphs.known(one <= other) for d, (one, other) in pairs)
    if not inside or not isinstance(source, Node):
        return inside
    return all(graphs.known(one == other) for one, other in zip(index.shape, graphs.tensor(source).shape, strict=True))


def _is_worthwhile(length: graphs.Size, value: torch.Tensor) -> bool:
    """Return True if comparing with so many elements of each row takes no longer than to fill a constant and scatter.

    One element never takes longer: it executes less than a kernel which reads the constant. A CPU has fewer
    instructions in the time of a byte, and a launch takes none.
    """
    if not isinstance(length, int) or not 0 < length <= MOST_ELEMENTS:
        return False
    if length == 1:
        return True
    if not inductor.generates_triton(value.device):
        return False
    lost = length * INSTRUCTIONS / INSTRUCTIONS_A_BYTE - value.element_size()
    elements = value.numel()
    return lost <= 0 or (isinstance(elements, int) and elements * lost <= LAUNCH_BYTES)


def _comparison(scatter: _Scatter, made: Made) -> Node:
    """Return a node with a scatter's result: of each element in turn, as one after the other is placed."""
    value, shape = graphs.tensor(scatter.node), graphs.argument(scatter.node, "self").args[0]
    place = made.places(shape, scatter.dimension, value)
    index = made.padded(scatter.index, shape, scatter.shorter, -1)
    source = _padded_source(scatter, made, shape)
    result = made.number(scatter.constant, value)
    for number in range(scatter.length):
        found = made.call(aten.eq.Tensor, _one(scatter, made, index, number), place)
        placed = _placed(scatter, made, result, _one(scatter, made, source, number))
        result = made.call(aten.where.self, found, placed, result)
    return result


def _padded_source(scatter: _Scatter, made: Made, shape: Sequence[Argument]) -> Node:
    """Return what is scattered, as long as the result along other dimensions; a number has one element."""
    if isinstance(scatter.source, Node):
        return made.padded(scatter.source, shape, scatter.shorter, 0)
    return made.number(scatter.source, graphs.tensor(scatter.node))


def _one(scatter: _Scatter, made: Made, node: Node, number: int) -> Node:
    """Return one of the elements of each row, by its number; all that there is where there is one."""
    if scatter.length == 1 or not graphs.tensor(node).dim():
        return node
    return made.call(aten.slice.Tensor, node, scatter.dimension, number, number + 1)


def _placed(scatter: _Scatter, made: Made, before: Node, source: Node) -> Node:
    """Return what is in a scatter's place: a float that is added to 0.0 is never -0.0."""
    return made.call(aten.add.Tensor, before, source) if scatter.node.target is aten.scatter_add.default else source
