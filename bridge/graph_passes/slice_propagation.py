"""Slice propagation: from which slices of its inputs an operation makes a slice of its result."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass

from torch.fx import Node
from torch.fx.node import Argument

from ..inductor import graphs
from ..inductor.graphs import aten

#: Views that have the sizes of their result among their arguments.
_SIZED = {aten.view.default, aten.reshape.default, aten._unsafe_view.default, aten.expand.default}


@dataclass(frozen=True)
class Move:
    """Say how a slice passes an operation.

    needs: its inputs, each with the dimension that is sliced, or None where all of it is needed;
    size: (dimension, length) of the result where that is an argument of the operation.
    """

    needs: tuple[tuple[Node, int | None], ...]
    size: tuple[int, int] | None = None

    def arguments(self, args: tuple[Argument, ...]) -> tuple[Argument, ...]:
        """Return the operation's arguments, changed where they have the size of its result."""
        if self.size is None:
            return args
        dim, length = self.size
        sizes = list(args[1])
        sizes[dim] = length
        return (args[0], sizes, *args[2:])


def move(node: Node, dim: int | None, length: graphs.Size, begins: bool = False) -> Move | None:
    """Return how a slice of a dimension passes an operation; None where it does not, or all of the result is needed.

    begins: it has the first elements of the dimension, one after another.
    """
    if dim is None:
        return None
    if graphs.is_scan(node):
        return Move(((node.args[0], dim),)) if begins or dim != _scanned(node) else None
    if node.target is operator.getitem:
        source = node.args[0]
        return Move(((source, dim),)) if graphs.is_reduction(source) else None
    if graphs.is_pointwise(node):
        return _through_pointwise(node, dim)
    if graphs.is_reduction(node):
        return _through_reduction(node, dim)
    return _through_view(node, dim, length) if graphs.is_view(node) else None


def _through_pointwise(node: Node, dim: int) -> Move | None:
    """Have a slice pass a pointwise operation; inputs that are repeated along the dimension stay whole."""
    needs: list[tuple[Node, int | None]] = []
    sizes = graphs.tensor(node).shape
    for source in graphs.tensor_inputs(node):
        theirs = graphs.tensor(source).shape
        own = _sliced(theirs, sizes, dim)
        if own is not None and not graphs.known(theirs[own] == sizes[dim]):
            return None
        needs.append((source, own))
    return Move(tuple(needs))


def _scanned(node: Node) -> int:
    """Return the dimension along which a scan goes."""
    return graphs.argument(node, "dim") % max(graphs.tensor(node).dim(), 1)


def _sliced(theirs: Sequence[graphs.Size], sizes: Sequence[graphs.Size], dim: int) -> int | None:
    """Return the dimension of an input that one of the result's is, if they are aligned at the end.

    Return None if the input is repeated.

    Where both are 1 it is not: a slice may be empty.
    """
    own = dim - (len(sizes) - len(theirs))
    repeated = own < 0 or (graphs.known(theirs[own] == 1) and not graphs.known(sizes[dim] == 1))
    return None if repeated else own


def _through_reduction(node: Node, dim: int) -> Move | None:
    reduced, source = graphs.reduced_dimensions(node), node.args[0]
    rank = graphs.tensor(source).dim()
    kept = list(range(rank)) if graphs.keeps_dimensions(node) else [d for d in range(rank) if d not in reduced]
    return Move(((source, kept[dim]),)) if kept[dim] not in reduced else None


def _through_view(node: Node, dim: int, length: graphs.Size) -> Move | None:
    source, target = node.args[0], node.target
    theirs, sizes = graphs.tensor(source).shape, graphs.tensor(node).shape
    if target in _SIZED and not isinstance(length, int):
        return None
    size = (dim, length) if target in _SIZED else None
    if target in (aten.slice.Tensor, aten.select.int):
        cut = graphs.argument(node, "dim") % len(theirs)
        own = dim + (target is aten.select.int and dim >= cut)
        return Move(((source, own),)) if own != cut else None
    if target is aten.expand.default:
        return Move(((source, _sliced(theirs, sizes, dim)),), size)
    if target in (aten.permute.default, aten.transpose.int, aten.t.default):
        return Move(((source, _order(node, len(theirs))[dim]),))
    same = _same_dimension(theirs, sizes, dim) if target in graphs.WHOLE_VIEWS else None
    if same is None:
        return None
    if same in _squeezed(node, len(theirs)) and not all(graphs.known(size != 1) for size in (length, theirs[same])):
        return None
    return Move(((source, same),), size)


def _squeezed(node: Node, rank: int) -> set[int]:
    """Return the dimensions of its input that a view drops if they are 1, as a slice of one may be."""
    if node.target is aten.squeeze.default:
        return set(range(rank))
    if node.target not in (aten.squeeze.dim, aten.squeeze.dims):
        return set()
    given = graphs.argument(node, "dim")
    return {d % rank for d in (given if isinstance(given, Sequence) else [given])}


def _order(node: Node, rank: int) -> list[int]:
    """Return the dimensions of its input that those of a permutation's result are."""
    if node.target is aten.permute.default:
        return [d % rank for d in node.args[1]]
    order = list(range(rank))
    first, second = node.args[1:3] if node.target is aten.transpose.int else (0, rank - 1)
    order[first], order[second] = order[second], order[first]
    return order


def _same_dimension(theirs: Sequence[graphs.Size], sizes: Sequence[graphs.Size], dim: int) -> int | None:
    """Return the dimension of the input that a dimension of a reshaped result is.

    Both are as long, and have as many elements before them.  Several may have that, and it is none of them, where no
    element is before it, as in an empty batch, or where it has one element, of which a slice may be empty.
    """
    before = math.prod(sizes[:dim])
    if graphs.known(before == 0) or graphs.known(sizes[dim] == 1):
        return None
    same = (own for own in range(len(theirs)) if graphs.known(theirs[own] == sizes[dim]))
    return next((own for own in same if graphs.known(math.prod(theirs[:own]) == before)), None)
