"""Add windows up where they lie, in the place of a scatter by an index that the graph computes of nothing.

The gradient of `x.unfold(-1, 16, 8)` is the example: zeros as large as x, into which a kernel of its own adds each
element of each window, by atomics.  The windows' places are numbers that are known.  Two windows overlap in their
halves here, so x's gradient is the first halves in their places, and the second ones a step further, added up: any
kernel may compute that, and it loads each element once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import torch
from torch.fx import Graph, Node

from ..inductor import graphs
from ..inductor.constants import integers
from ..inductor.graphs import aten
from ..inductor.numerics import emulates_eager_rounding
from ..support.error_boundary import attempt
from .made import Made, replace

#: Windows that have an element in common, at most: each is a load of its own.
MOST_OVERLAPPING = 8


@dataclass(frozen=True)
class Windows:
    """Describe windows along a dimension of `length` elements: `size` of each, `step` from one to the next."""

    dimension: int
    length: int
    first: int
    count: int
    size: int
    step: int

    @property
    def steps(self) -> int:
        """Return over how many steps a window goes: as many windows have an element in common."""
        return -(-self.size // self.step)


def windows_in_place(graph: Graph) -> Iterator[str]:
    """Add up windows in the place of scatters; yields a line about each."""
    for node in list(graph.nodes):
        with attempt(node.name):
            windows = _windows(node)
            if windows is not None and replace(graph, node, partial(_added_up, node, windows)):
                yield f"{graphs.place(node)}: windows, added up where they lie and not by a kernel of its own"


def _windows(node: Node) -> Windows | None:
    """Return the windows that a node adds to zeros; None where it does anything else."""
    if node.target is not aten.index_put.default or not graphs.argument(node, "accumulate"):
        return None
    base, indices, values = (graphs.argument(node, name) for name in ("self", "indices", "values"))
    found = [(dimension, index) for dimension, index in enumerate(indices) if index is not None]
    value = graphs.tensor(node)
    if graphs.filling(base) != 0 or len(found) != 1 or not graphs.has_number_sizes(node) or not _is_added(value):
        return None
    ((dimension, index),) = found
    if graphs.tensor(index).dim() != 1 or graphs.tensor(values).dim() != value.dim():
        return None
    places = integers(index)
    windows = None if places is None else windows_of(places.tolist(), dimension, value.shape[dimension])
    # Of three addends, PyTorch rounds the sum, and a kernel that rounds like its operators each of two additions.
    rounds = emulates_eager_rounding() and graphs.is_computed_wider(node)
    return None if windows is not None and windows.steps > 2 and rounds else windows


def _is_added(value: torch.Tensor) -> bool:
    """Return True for a value that has a sum: torch adds up no booleans, and PyTorch alone computes complex ones."""
    return value.is_floating_point() and graphs.may_be_selected(value)


def windows_of(places: list[int], dimension: int, length: int) -> Windows | None:
    """Return the windows whose elements have these places, one after the other; None where they are of another kind."""
    if not places or min(places) < 0 or max(places) >= length:
        return None
    size = next((n for n in range(1, len(places)) if places[n] != places[n - 1] + 1), len(places))
    count, rest = divmod(len(places), size)
    step = places[size] - places[0] if count > 1 else size
    if rest or step < 1 or places != [places[0] + w * step + n for w in range(count) for n in range(size)]:
        return None
    found = Windows(dimension, length, places[0], count, size, step)
    return found if found.steps <= MOST_OVERLAPPING else None


def _added_up(node: Node, windows: Windows, made: Made) -> Node:
    """Return a node with the sums of what windows have in each place."""
    values, shape = graphs.argument(node, "values"), list(graphs.tensor(node).shape)
    outer, inner = shape[: windows.dimension], shape[windows.dimension + 1 :]
    apart = made.call(aten.reshape.default, values, [*outer, windows.count, windows.size, *inner])
    parts = [_part(apart, windows, number, made) for number in range(windows.steps)]
    # A float that was added to 0.0 is never -0.0.
    whole = made.call(aten.add.Tensor, reduce(partial(made.call, aten.add.Tensor), parts), 0)
    steps = windows.count + windows.steps - 1
    row = made.call(aten.reshape.default, whole, [*outer, steps * windows.step, *inner])
    # The last step may end behind the row: no window has an element there.
    left = windows.length - windows.first - steps * windows.step
    if left < 0:
        row = made.call(aten.slice.Tensor, row, windows.dimension, 0, windows.length - windows.first)
        row = made.call(aten.clone.default, row, memory_format=torch.contiguous_format)
    around = [0, 0] * len(inner) + [windows.first, max(left, 0)]
    return made.call(aten.constant_pad_nd.default, row, around, 0) if any(around) else row


def _part(apart: Node, windows: Windows, number: int, made: Made) -> Node:
    """Return what all windows have of one of their steps, in the places of the steps; zeros where none is."""
    axis, begin = windows.dimension + 1, number * windows.step
    end = min(begin + windows.step, windows.size)
    part = apart if windows.steps == 1 else made.call(aten.slice.Tensor, apart, axis, begin, end)
    inner = [0, 0] * (graphs.tensor(apart).dim() - axis - 1)
    around: list[Any] = [*inner, 0, windows.step - (end - begin), number, windows.steps - 1 - number]
    return made.call(aten.constant_pad_nd.default, part, around, 0) if any(around) else part
