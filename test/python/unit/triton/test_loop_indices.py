"""Test that quotients and remainders of a loop are written as the loops that they are."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
import sympy
from torch._inductor.codegen.simd import IterationRangesRoot
from torch._inductor.virtualized import V
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

from bridge.lowering.triton.loop_indices import LoopIndexMixin

SIZEVARS = SimpleNamespace(
    statically_known_equals=lambda one, other: one == other,
    statically_known_multiple_of=lambda number, divisor: number % divisor == 0,
)


class Base:
    """Stand for Inductor's kernel, in which an index stays as it is."""

    def __init__(self):
        self.range_tree_nodes, self.iter_vars_count = {}, itertools.count()

    def prepare_indexing(self, index):
        return index

    def load(self, name, index):
        return index


class Kernel(LoopIndexMixin, Base):
    """Stand for a kernel that Bridge fused."""

    bridge_fused = True


@pytest.fixture
def row():
    """Yield a kernel with a tree of 1024 elements, the tree, and its whole loop."""
    kernel = Kernel()
    with V.set_kernel_handler(kernel), V.set_graph_handler(SimpleNamespace(sizevars=SIZEVARS)):
        arguments = {"pid_cache": {}, "is_loop": False, "tensor_dim": 1, "grid_dim": None, "has_zdim": False}
        tree = IterationRangesRoot("r0_index", sympy.Integer(1024), "r0_", 1, kernel, **arguments)
        yield kernel, tree, tree.lookup(sympy.S.One, sympy.Integer(1024)).symbol()


def test_a_row_of_segments_has_one_form_in_loads_and_in_indices(row):
    kernel, tree, whole = row
    segment, lane = tree.construct([sympy.Integer(16), sympy.Integer(64)])
    index = 4096 * FloorDiv(whole, 64) + ModularIndexing(whole, 1, 64)
    assert kernel.prepare_indexing(index) == kernel.load("buf0", index) == 4096 * segment + lane


def test_a_loop_within_a_loop_is_one_of_the_tree(row):
    kernel, tree, _ = row
    segment, _ = tree.construct([sympy.Integer(16), sympy.Integer(64)])
    found = kernel.prepare_indexing(ModularIndexing(segment, 2, 4))
    entry = kernel.range_tree_nodes[found]
    assert (entry.divisor, entry.length) == (128, 4)


def test_what_does_not_divide_a_loop_stays(row):
    kernel, _, whole = row
    index = FloorDiv(whole, 24) + ModularIndexing(whole, 1, 48) + FloorDiv(whole + 1, 64)
    assert kernel.prepare_indexing(index) == index


@pytest.mark.parametrize("beside", [lambda whole: whole, lambda whole: ModularIndexing(whole, 1, 128)])
def test_a_quotient_beside_a_loop_that_goes_over_a_part_of_it_stays(row, beside):
    kernel, _, whole = row
    index = beside(whole) - 1024 * FloorDiv(FloorDiv(whole, 64) + 1, 16)
    assert kernel.prepare_indexing(index) == kernel.load("buf0", index) == index


def test_kernels_of_inductors_stay_as_they_are(row):
    kernel, _, whole = row
    kernel.bridge_fused = False
    index = FloorDiv(whole, 64)
    assert kernel.prepare_indexing(index) == kernel.load("buf0", index) == index


def test_a_quotient_by_a_symbol_was_asked_about_with_a_power_of_it(row):
    """A loop of `s*t - s` rows has `s` of `t - 1`: a power of a size is nothing that torch knows bounds of."""
    kernel, *_ = row
    sequences, tokens = sympy.symbols("s0 s1", integer=True, positive=True)
    arguments = {"pid_cache": {}, "is_loop": False, "tensor_dim": 0, "grid_dim": None, "has_zdim": False}
    tree = IterationRangesRoot("xindex", sequences * tokens - sequences, "x", 0, kernel, **arguments)
    whole = tree.lookup(sympy.S.One, tree.numel).symbol()
    asked = []
    known = SimpleNamespace(
        statically_known_equals=SIZEVARS.statically_known_equals,
        statically_known_multiple_of=lambda number, divisor: bool(asked.append(divisor)),
    )
    index = FloorDiv(whole, tokens - 1)
    with V.set_graph_handler(SimpleNamespace(sizevars=known)):
        assert kernel.prepare_indexing(index) == index
    assert [sympy.expand(divisor) for divisor in asked] == [tree.numel]
