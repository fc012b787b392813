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

#: What has its input in a larger tensor of one value.
_PADDED = {aten.constant_pad_nd.default, aten.slice_scatter.default}


@dataclass(frozen=True)
class Pads:
    """Hold the amounts of a padding, as `constant_pad_nd` has them, and the value; what is negative is cut off."""

    amounts: tuple[int, ...]
    value: complex


@dataclass(frozen=True)
class Move:
    """Say how a slice passes an operation.

    needs: its inputs, each with the dimension that is sliced, or None where all of it is needed;
    size: (dimension, length) of the result where that is an argument of the operation;
    pads: the slice itself, where it is its one input with a value before and behind it.
    """

    needs: tuple[tuple[Node, int | None], ...]
    size: tuple[int, int] | None = None
    pads: Pads | None = None

    def arguments(self, args: tuple[Argument, ...]) -> tuple[Argument, ...]:
        """Return the operation's arguments, changed where they have the size of its result."""
        if self.size is None:
            return args
        dim, length = self.size
        sizes = list(args[1])
        sizes[dim] = length
        return (args[0], sizes, *args[2:])


def move(node: Node, dim: int | None, length: graphs.Size, start: int | None = None) -> Move | None:
    """Return how a slice of a dimension passes an operation; None where it does not, or all of the result is needed.

    start: the first of its elements, where they are one after another and that is known.
    """
    if dim is None:
        return None
    if node.target in _PADDED:
        return _through_padding(node, dim, start, length)
    if graphs.is_scan(node):
        return Move(((node.args[0], dim),)) if start == 0 or dim != _scanned(node) else None
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


def _through_padding(node: Node, dim: int, start: int | None, length: graphs.Size) -> Move | None:
    """Have a slice along a padded dimension be another padding of what is padded."""
    padding = _padding(node, dim)
    if padding is None or start is None:
        return None
    source, pads = padding
    own = graphs.tensor(source).shape[dim]
    more = graphs.difference(length, own)
    if more is None:
        return None
    before = pads.amounts[_first_amount(node, dim)] - start
    after = more - before
    cut_off = max(0, -before) + max(0, -after)
    # What cuts off more than there is would be no padding; what is known to leave nothing needs none of its input.
    if not graphs.known(cut_off <= own) or graphs.known(cut_off >= own):
        return None
    return Move(((source, None),), pads=_padded(node, pads, dim, (before, after)))


def _first_amount(node: Node, dim: int) -> int:
    """Return where the amounts of a dimension are among those of a padding."""
    return 2 * (graphs.tensor(node).dim() - 1 - dim)


def _padded(node: Node, pads: Pads, dim: int, amounts: tuple[int, int]) -> Pads:
    at = _first_amount(node, dim)
    return Pads((*pads.amounts[:at], *amounts, *pads.amounts[at + 2 :]), pads.value)


def _padding(node: Node, dim: int) -> tuple[Node, Pads] | None:
    """Return what an operation pads, and how, of which a slice along the dimension is another padding; else None."""
    return _given_padding(node) if node.target is aten.constant_pad_nd.default else _scattered_padding(node, dim)


def _given_padding(node: Node) -> tuple[Node, Pads] | None:
    given = graphs.argument(node, "pad")
    value = graphs.argument(node, "value")
    if not all(isinstance(amount, int) for amount in given) or not isinstance(value, int | float | complex):
        return None
    zeros = [0] * (2 * graphs.tensor(node).dim() - len(given))
    return node.args[0], Pads((*given, *zeros), value)


def _scattered_padding(node: Node, dim: int) -> tuple[Node, Pads] | None:
    """Return the padding that a slice in a tensor of one value is, along the dimension in which it lies."""
    base, source = node.args[:2]
    rank, value = graphs.tensor(node).dim(), graphs.filling(base)
    start, step = (graphs.argument(node, name) for name in ("start", "step"))
    same = graphs.tensor(source).dtype == graphs.tensor(node).dtype
    if value is None or not same or graphs.argument(node, "dim") % rank != dim or step != 1:
        return None
    if start is not None and (not isinstance(start, int) or start < 0):
        return None
    none = Pads((0,) * (2 * rank), value)
    # What is behind the source follows from the length of a slice.
    return source, _padded(node, none, dim, (start or 0, 0))


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
