"""Rows that are cut into the parts of the smallest."""

from __future__ import annotations

import pytest
import sympy
from sympy import Symbol

from bridge.affine.translate.loops import cut_rows


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
