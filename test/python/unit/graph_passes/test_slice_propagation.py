"""Test from which slices of its inputs an operation makes a slice of its result."""

from __future__ import annotations

import pytest
import sympy
import torch
from torch.fx import Graph, Node
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.fx.node import map_arg

from bridge.graph_passes.slice_propagation import Move, Pads, move
from bridge.inductor.graphs import aten


class Traced:
    """Build a graph of tensors that have shapes and no values."""

    def __init__(self):
        self.graph = Graph()

    def tensor(self, name: str, *shape: int) -> Node:
        node = self.graph.placeholder(name)
        node.meta["val"] = torch.empty(shape, device="meta")
        return node

    def call(self, target, *args) -> Node:
        node = self.graph.call_function(target, args)

        node.meta["val"] = target(*map_arg(args, lambda source: source.meta["val"])).to("meta")
        return node


@pytest.fixture
def traced():
    return Traced()


def test_a_repeated_input_of_a_pointwise_operation_stays_whole(traced):
    x, row, column = traced.tensor("x", 4, 6), traced.tensor("row", 6), traced.tensor("column", 4, 1)
    added = traced.call(aten.add.Tensor, x, row)
    assert move(added, 0, 1) == Move(((x, 0), (row, None)))
    assert move(added, 1, 1) == Move(((x, 1), (row, 0)))
    scaled = traced.call(aten.mul.Tensor, x, column)
    assert move(scaled, 1, 1) == Move(((x, 1), (column, None)))


def test_a_reduction_passes_the_dimensions_that_it_keeps(traced):
    x = traced.tensor("x", 4, 6, 8)
    assert move(traced.call(aten.sum.dim_IntList, x, [1]), 1, 1) == Move(((x, 2),))
    kept = traced.call(aten.sum.dim_IntList, x, [-2], True)
    assert move(kept, 2, 1) == Move(((x, 2),))
    assert move(kept, 1, 1) is None


@pytest.mark.parametrize("target", [aten.cumsum.default, aten.cumprod.default, aten.logcumsumexp.default])
def test_the_first_elements_pass_a_scan(traced, target):
    x = traced.tensor("x", 4, 6)
    scan = traced.call(target, x, -1)
    assert move(scan, 0, 1) == move(scan, 0, 1, start=0) == Move(((x, 0),))
    assert move(scan, 1, 5, start=0) == Move(((x, 1),))
    assert move(scan, 1, 5) is None


def test_a_slice_of_what_is_padded_is_another_padding(traced):
    x = traced.tensor("x", 4, 6)
    padded = traced.call(aten.constant_pad_nd.default, x, [2, 1], 3.0)
    assert move(padded, 1, 4, 1) == Move(((x, None),), pads=Pads((1, -3, 0, 0), 3.0))
    assert move(padded, 1, 1, 8) is None, "nothing of the input is in the slice"
    assert move(padded, 1, 4) is None, "it is not known where the slice begins"
    assert move(padded, 1, sympy.Symbol("n"), 1) is None


def test_a_slice_of_a_symbolic_number_of_padded_rows_is_another_padding(traced):
    """Check that a slice of symbolic padded rows is another padding; sizes are two or more."""
    rows = ShapeEnv().create_unbacked_symint()
    torch._check(rows >= 2)
    x = traced.tensor("x", rows, 4)
    padded = traced.graph.call_function(aten.constant_pad_nd.default, (x, [0, 0, 2, 0], 3.0))
    padded.meta["val"] = torch.empty((rows + 2, 4), device="meta")
    assert move(padded, 0, rows, 1) == Move(((x, None),), pads=Pads((0, 0, 1, -1), 3.0))
    assert move(padded, 0, rows, 4) == Move(((x, None),), pads=Pads((0, 0, -2, 2), 3.0)), "all may be cut off"
    assert move(padded, 0, rows, 5) is None, "there may be less than is cut off"
    assert move(padded, 0, 2 * rows, 1) is None


def test_a_slice_of_rows_scattered_into_a_constant_is_a_padding(traced):
    rows = traced.tensor("rows", 4, 6)
    zeros = traced.call(aten.full.default, [9, 6], 0.0)
    scattered = traced.call(aten.slice_scatter.default, zeros, rows, 0, 3, 7)
    assert move(scattered, 0, 5, 4) == Move(((rows, None),), pads=Pads((0, 0, -1, 2), 0.0))
    assert move(scattered, 1, 2, 0) is None, "the other dimension is that of both"
    among = traced.call(aten.slice_scatter.default, traced.tensor("others", 9, 6), rows, 0, 3, 7)
    assert move(among, 0, 5, 4) is None
    apart = traced.call(aten.slice_scatter.default, zeros, rows, 0, 1, 9, 2)
    assert move(apart, 0, 5, 4) is None


@pytest.mark.parametrize(
    ("target", "args", "dim", "own"),
    [
        (aten.permute.default, ([1, -1, 0],), 1, 2),
        (aten.transpose.int, (0, 2), 0, 2),
        (aten.slice.Tensor, (1, 0, 3), 2, 2),
        (aten.slice.Tensor, (1, 0, 3), 1, None),
        (aten.select.int, (1, 0), 1, 2),
        (aten.select.int, (-2, 0), 0, 0),
        (aten.unsqueeze.default, (0,), 3, 2),
    ],
    ids=str,
)
def test_views(traced, target, args, dim, own):
    x = traced.tensor("x", 4, 6, 8)
    moved = move(traced.call(target, x, *args), dim, 1)
    assert moved == (None if own is None else Move(((x, own),)))


@pytest.mark.parametrize(
    "target, args", [(aten.squeeze.default, ()), (aten.squeeze.dim, (-3,)), (aten.squeeze.dims, ([0, 2],))], ids=str
)
def test_a_slice_of_one_would_be_squeezed(traced, target, args):
    """Check that a slice of one element is not taken through a squeeze.

    A dimension of 4 is kept, and its slice was dropped: "internal_error" where it was read.
    """
    x = traced.tensor("x", 4, 6, 1)
    squeezed = traced.call(target, x, *args)
    assert move(squeezed, 0, 1) is None
    assert move(squeezed, 0, 2) == Move(((x, 0),))


def test_an_empty_slice_would_not_be_squeezed(traced):
    """Check that an empty slice is not squeezed: of two dimensions of 1 either may be the one that is left."""
    ones = traced.tensor("ones", 1, 1, 4)
    assert move(traced.call(aten.squeeze.dim, ones, 0), 0, 0) is None


def test_a_view_of_an_empty_batch_may_have_any_dimension(traced):
    """Check that a slice of an empty batch is refused: either dimension of 3 could be meant; the shape was wrong."""
    batch = traced.tensor("batch", 0, 3, 3)
    assert move(traced.call(aten.unsqueeze.default, batch, 1), 3, 1) is None


def test_an_empty_slice_of_a_new_dimension_is_none_of_another_of_one(traced):
    """Check that an empty slice of a new dimension is not taken of another of size one.

    `x.unsqueeze(1)[:, :0]` emptied the dimension of one that x has, and the shape was another.
    """
    ones = traced.tensor("ones", 5, 1, 3)
    added = traced.call(aten.unsqueeze.default, ones, 1)
    assert move(added, 1, 0) is None
    assert move(added, 3, 2) == Move(((ones, 2),))


def test_sizes_among_the_arguments_become_those_of_the_slice(traced):
    x, row = traced.tensor("x", 4, 6), traced.tensor("row", 1, 6)
    split = traced.call(aten.view.default, x, [2, 2, 6])
    moved = move(split, 2, 3)
    assert moved == Move(((x, 1),), (2, 3)) and moved.arguments(split.args) == (x, [2, 2, 3])
    assert split.args == (x, [2, 2, 6]), "the operation itself has changed"
    repeated = traced.call(aten.expand.default, row, [4, 6])
    moved = move(repeated, 0, 2)
    assert moved == Move(((row, None),), (0, 2)) and moved.arguments(repeated.args) == (row, [2, 6])


def test_what_a_slice_does_not_pass(traced):
    x = traced.tensor("x", 4, 6)
    split = traced.call(aten.view.default, x, [2, 2, 6])
    assert move(split, 0, 1) is None, "half of the rows are no dimension of the input"
    assert move(split, 2, sympy.Symbol("n")) is None, "the length is to be a number among the arguments"
    assert move(traced.call(aten.mm.default, x, traced.tensor("w", 6, 3)), 0, 1) is None
    assert move(traced.call(aten.relu.default, x), None, 1) is None
