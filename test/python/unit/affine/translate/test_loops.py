"""Test rows that are cut into the parts of the smallest."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import sympy
from sympy import Symbol
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

from bridge.affine.translate.loops import NodeLoops, cut_anywhere, cut_in_place, cut_rows, shared_loops


class TestCutRows:
    n, t = (Symbol(name, integer=True, positive=True) for name in ("n", "t"))

    @pytest.mark.parametrize("interleaved", [False, True])
    def test_in_parts_of_the_smallest(self, interleaved):
        nodes = [[[self.n], [4 * self.t]], [[self.n, 2 * self.t]], [[self.n], [self.t]]]
        four, two = ([4, self.t], [2, self.t]) if not interleaved else ([self.t, 4], [self.t, 2])
        assert cut_rows(nodes, interleaved) == [[[self.n], four], [[self.n, *two]], [[self.n], [self.t]]]

    @pytest.mark.parametrize("row", [sympy.Integer(64), Symbol("u"), 17 * t, t * n, t + 1])
    def test_others_stay_whole(self, row):
        nodes = [[[self.n], [row]], [[self.n], [self.t]]]
        assert cut_rows(nodes) == nodes

    def test_outermost_loops_are_the_band(self):
        nodes = [[[2 * self.t]], [[self.t]]]
        assert cut_rows(nodes) == nodes


def numbers(*extents):
    return [sympy.Integer(extent) for extent in extents]


def divided_loops(nodes):
    """Return the last choice, in which loops are cut where indices divide them."""
    return shared_loops(nodes)[-1]


class TestSharedLoops:
    """Test loops of a row of 64 numbers in blocks of 16: the largest of each block, and one byte for each pair."""

    blocks = NodeLoops(numbers(8, 4), numbers(16), 0, [set(), set()], [("x", numbers(64, 16, 1))])

    def pairs(self, *accesses, cuts=(set(), set())):
        return NodeLoops(numbers(8, 32), [], 1, list(cuts), [("x", numbers(*strides)) for strides in accesses])

    def test_steps_end_with_the_blocks_that_others_go_over(self):
        """Check that pairs are cut where blocks end: a block is 8 pairs, and a row is 4 blocks."""
        blocks, pairs = divided_loops([self.blocks, self.pairs((64, 2))])
        assert blocks == [[8], [4], [16]]
        assert pairs == [[8], [4, 8]]

    def test_steps_beside_smaller_ones_stay_whole(self):
        """Check that steps beside smaller ones are not cut: the node's other loop goes over the elements between."""
        assert divided_loops([self.blocks, self.pairs((1, 2))])[1] == [[8], [32]]

    def test_steps_in_other_blocks_stay_whole(self):
        """Check that steps over three elements are not cut by blocks of 16, which are no multiple of them."""
        assert divided_loops([self.blocks, self.pairs((96, 3))])[1] == [[8], [32]]

    def test_blocks_of_other_buffers_are_none(self):
        other = NodeLoops(numbers(8, 32), [], 1, [set(), set()], [("y", numbers(64, 2))])
        assert divided_loops([self.blocks, other])[1] == [[8], [32]]

    def test_loops_are_cut_where_they_are_divided(self):
        """Check that loops are cut where their own indices divide them, without another node."""
        assert divided_loops([self.pairs((32, 1), cuts=(set(), {4, 16}))]) == [[[8], [2, 4, 4]]]

    def test_loops_are_cut_where_sizes_divide_them(self):
        """Check that a loop over repeated heads of s tokens is cut by s, which no affine expression divides by."""
        s = sympy.Symbol("s", integer=True, positive=True)
        heads = NodeLoops([32 * s], numbers(128), 0, [{s, 4 * s}], [("x", numbers(0, 1))])
        tokens = NodeLoops(
            [s, sympy.Integer(32)], numbers(128), 0, [set(), set()], [("y", [4096 * s, *numbers(128, 1)])]
        )
        for loops, other in shared_loops([heads, tokens]):
            assert loops == [[8, 4, s], [128]]
            assert other == [[s], [32], [128]]

    def test_rows_that_are_cut_are_cut_in_all_nodes(self):
        """Check that rows cut in one node are cut in all: 8 sequences of 512 positions must share one band."""
        rows = NodeLoops(numbers(4096), numbers(1024), 0, [{512}], [("pos", numbers(0, 1))])
        halves = NodeLoops(numbers(4096, 512), [], 1, [set(), set()], [("out", numbers(512, 1))])
        assert divided_loops([rows, halves]) == [[[8, 512], [1024]], [[8, 512], [512]]]

    def test_a_cut_that_does_not_divide_is_none(self):
        assert divided_loops([self.pairs((32, 1), cuts=(set(), {3}))]) == [[[8], [32]]]

    def test_loops_in_another_order_are_no_factors(self):
        """Check that loops in another order are no factors: of rows 32 k + j of a tile, 128 = 32 * 4 is by chance."""
        rows = NodeLoops(
            numbers(128, 16),
            numbers(16),
            0,
            [set(), set()],
            [("x", numbers(256, 16, 1)), ("max", numbers(16, 1, 0)), ("one", numbers(0, 0, 0))],
        )
        accesses = [("max", numbers(4, 16, 512, 1)), ("one", numbers(0, 0, 0, 0))]
        tiles = NodeLoops(numbers(4, 32, 4, 4), [], 1, [set()] * 4, accesses)
        assert divided_loops([rows, tiles])[0] == [[128], [16], [16]]
        ordered = NodeLoops(numbers(4, 32, 4, 4), [], 1, [set()] * 4, [("max", numbers(512, 16, 4, 1))])
        assert divided_loops([rows, ordered])[0] == [[4, 32], [4, 4], [16]]

    def test_order_in_what_others_share_says_nothing(self):
        """Check that the order of a copy of tiles does not decide: 4 blocks of a row are 32 * 4 rows by chance."""
        t = Symbol("t", integer=True, positive=True)
        rows = NodeLoops([128 * t, sympy.Integer(4)], numbers(16), 0, [set(), set()], [("max", numbers(4, 1, 0))])
        accesses = [("max", numbers(512, 4, 128, 1)), ("tiles", numbers(512, 16, 4, 1))]
        tiles = NodeLoops([t, *numbers(32, 4, 4)], [], 1, [set()] * 4, accesses)
        copy = NodeLoops([512 * t], [], 2, [set()], [("tiles", numbers(1))])
        own, _, copied = divided_loops([rows, tiles, copy])
        assert own == [[128 * t], [4], [16]]
        assert copied == [[t, 32, 4, 4]]

    def test_steps_beside_a_division_stay_whole(self):
        """Check that a loop is not cut beside one that an index divides: it goes between the rows, without a stride."""
        i, j = (Symbol(name, integer=True, nonnegative=True) for name in "ij")
        index = 16 * i + 4 * FloorDiv(j, 4) + ModularIndexing(j, 1, 4)
        copy = NodeLoops(numbers(64, 16), [], 1, [set(), {4}], [("x", numbers(16, 0))], [i, j], [("x", index)])
        tiles = NodeLoops(numbers(8, 128), [], 0, [set(), set()], [("x", numbers(128, 1))])
        assert divided_loops([tiles, copy])[1] == [[64], [4, 4]]
        without = replace(copy, indices=[], variables=[])
        assert divided_loops([tiles, without])[1] == [[8, 8], [4, 4]]

    def test_symbolic_strides_have_no_blocks(self):
        s = Symbol("s", integer=True, positive=True)
        node = NodeLoops([s, sympy.Integer(32)], [], 1, [set(), set()], [("x", [s, sympy.Integer(2)])])
        rows = NodeLoops([s], numbers(16), 0, [set()], [("x", [s, sympy.Integer(1)])])
        assert divided_loops([rows, node])[1] == [[s], [4, 8]]


class TestSymbolicRows:
    """Test tokens of an image, `h*w` in one loop, beside loops over its rows, its columns and their channels."""

    b, h, w, c = (Symbol(name, integer=True, positive=True) for name in "bhwc")

    def refined(self, own, target):
        nodes = [NodeLoops(own, [self.c], 0), NodeLoops(target, [], 1)]
        return shared_loops(nodes)[0][0][: len(own)]

    def test_tokens_of_an_image_were_other_rows_than_its_pixels(self):
        target = [self.b, self.h, self.w, self.c / 2]
        assert self.refined([self.b, self.h * self.w], target) == [[self.b], [self.h, self.w]]

    def test_the_side_of_a_square(self):
        assert self.refined([self.b, self.h**2], [self.b, self.h, self.h, self.c]) == [[self.b], [self.h, self.h]]

    def test_rows_of_a_number_stay_as_they_are(self):
        assert self.refined([self.b, sympy.Integer(48)], [self.b, *numbers(8, 6), self.c]) == [[self.b], [48]]

    def test_other_outer_loops_are_no_factors(self):
        assert self.refined([self.b, self.h * self.w], [self.b, self.h, self.c]) == [[self.b], [self.h * self.w]]


class TestInterleaved:
    """Test a row of 128 whose even and odd elements are of two kinds, each made from 64 stored elements."""

    kinds = NodeLoops(numbers(8, 64), [], 0, [set(), set()], [("kind", numbers(64, 1))], stored={"kind"})

    def row(self, *remainders, buffer="kind"):
        accesses = [(buffer, numbers(64, 0)), ("out", numbers(128, 1))]
        return NodeLoops(numbers(8, 128), [], 1, [set(), {2}], accesses, remainders=[set(), set(remainders)])

    def first_choice(self, row):
        return shared_loops([self.kinds, row])[0][1]

    def test_a_row_is_cut_into_the_stored_elements_and_the_kinds(self):
        assert self.first_choice(self.row(2)) == [[8], [64, 2]]

    @pytest.mark.parametrize("remainders", [(), (4,), (3,)])
    def test_a_row_without_kinds_of_the_stored_extent_stays_whole(self, remainders):
        assert self.first_choice(self.row(*remainders)) == [[8], [128]]

    def test_what_has_nothing_in_common_does_not_count(self):
        assert self.first_choice(self.row(2, buffer="another")) == [[8], [128]]

    def test_a_row_that_reads_what_another_node_only_reads_stayed_whole(self):
        reader = replace(self.kinds, stored={"sum"})
        assert shared_loops([reader, self.row(2)])[0][1] == [[8], [64, 2]]


class TestRepeated:
    """Test 16 reduced heads, with two copies of each in what is stored of them."""

    sums = NodeLoops(numbers(8, 16), numbers(64), 0, [set(), set()], [("sum", numbers(16, 1, 0))], stored={"sum"})

    def copies(self, cut, extent=32, buffer="sum"):
        accesses = [(buffer, numbers(16, 0, 0)), ("out", numbers(64 * extent, 64, 1))]
        return NodeLoops(numbers(8, extent, 64), [], 1, [set(), cut, set()], accesses)

    def first_choice(self, copies):
        return shared_loops([self.sums, copies])[0][1]

    def test_a_loop_over_copies_is_one_over_heads_and_one_over_the_copies_of_each(self):
        assert self.first_choice(self.copies({2})) == [[8], [16, 2], [64]]

    def test_a_loop_over_all_heads_several_times(self):
        assert self.first_choice(self.copies({16}, 48)) == [[8], [3, 16], [64]]

    @pytest.mark.parametrize("buffer, columns", [("sum", numbers(16, 4)), ("another", numbers(64))])
    def test_lanes_stay_whole_but_where_blocks_of_rows_and_columns_are_repeated(self, buffer, columns):
        """Check that lanes are cut where rows are, for a sum of each block of 2 rows and 4 columns."""
        blocks = replace(self.sums, iteration=numbers(8, 16), strides=[("sum", numbers(16, 1, 0))])
        accesses = [(buffer, numbers(0, 0)), ("out", numbers(64, 1))]
        elements = NodeLoops(numbers(16, 64), [], 1, [{2}, {4}], accesses)
        rows = [8, 2] if buffer == "sum" else [16]
        assert shared_loops([blocks, elements])[0][1] == [rows, columns]

    @pytest.mark.parametrize("cut, extent, buffer", [({2}, 48, "sum"), (set(), 32, "sum"), ({2}, 32, "another")])
    def test_other_loops_stay(self, cut, extent, buffer):
        assert self.first_choice(self.copies(cut, extent, buffer)) == [[8], [extent], [64]]


class TestCutInPlace:
    h, w, n = (Symbol(name, integer=True, positive=True) for name in ("h", "w", "n"))

    def test_pixels_of_a_channel_were_other_loops_than_rows_and_columns(self):
        """Check that pixels of one loop are cut into rows and columns in place, beside groups of channels."""
        groups, rows = [[2], [8], [8], [self.h * self.w]], [[2], [64], [self.h], [self.w]]
        assert cut_in_place([groups, rows]) == [[[2], [8], [8], [self.h, self.w]], rows]

    def test_in_the_finest_loops(self):
        whole = [[self.n * self.h * self.w]]
        nodes = [whole, [[self.n], [self.h * self.w]], [[self.n], [self.h, self.w]]]
        assert [list(itertools.chain(*node)) for node in cut_in_place(nodes)] == 3 * [[self.n, self.h, self.w]]

    @pytest.mark.parametrize("inside", [[[8]], [[w]], [[h * w]]])
    def test_loops_in_other_places_stay(self, inside):
        nodes = [[[2], [self.h * self.w]], [[2], [self.h], [self.w], *inside]]
        assert cut_in_place(nodes) == nodes

    def test_tokens_were_other_loops_than_the_pixels_of_planes(self):
        """Check that tokens are cut into the rows and columns of planes; only in planes are channels outermost."""
        tokens, planes = [[2], [self.h * self.w], [16]], [[2], [16], [self.h], [self.w]]
        assert cut_in_place([tokens, planes]) == [tokens, planes]
        assert cut_anywhere([tokens, planes]) == [[[2], [self.h, self.w], [16]], planes]

    def test_numbers_stay(self):
        """Check that loops whose extents are numbers are not cut: the passes find those by themselves."""
        nodes = [[[self.n], [sympy.Integer(64)]], [[self.n], *([extent] for extent in numbers(8, 8))]]
        assert cut_in_place(nodes) == nodes
