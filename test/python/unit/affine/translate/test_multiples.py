"""Test sizes that are known to be multiples of a number."""

from __future__ import annotations

import pytest
import sympy
from sympy import Eq, Ge, Symbol
from torch.utils._sympy.functions import FloorDiv, Max, Mod

from bridge.affine.translate.multiples import Multiples, find_multiples


class TestMultiples:
    s, u = (Symbol(name, integer=True, positive=True) for name in ("s", "u"))

    def find(self, expressions, facts=(), known=lambda condition: False, **options):
        return find_multiples(expressions, facts, known, **options)

    def test_no_division(self):
        found = self.find([self.s, 2 * self.u])
        assert not found.parts and not found.unproven
        assert found.rewrite(self.s) is self.s

    @pytest.mark.parametrize("k", [2, 3, 7, 16])
    def test_remainders_that_contradict_a_guard(self, k):
        part = FloorDiv(self.s + k - 1, k)
        found = self.find([part], [Eq(part, self.s - (k - 1) * part)])
        (t,) = found.parts
        assert found.rewrite(part) == t and found.rewrite(self.s) == k * t
        assert found.restore(t) == FloorDiv(self.s, k) and found.restore(3 * k * t) == 3 * self.s

    @pytest.mark.parametrize("k", [16, 128, 4096])
    @pytest.mark.parametrize("padded", [False, True])
    def test_all_remainders_that_contradict_a_guard(self, k, padded):
        """Check that a size is found to be a multiple of k from a guard about rows in blocks of 128."""
        part = FloorDiv(self.s + k - 1, k) if padded else FloorDiv(self.s, k)
        found = self.find([part], [Eq(4096 * self.s, 4096 * k * part)])
        (t,) = found.parts
        assert found.rewrite(self.s) == k * t and found.restore(t) == FloorDiv(self.s, k)
        assert not found.unproven

    @pytest.mark.parametrize("multiple", [0, 1, 64, 2048])
    def test_no_guard_against_one_of_many_remainders(self, multiple):
        """Check that a guard against one remainder of many proves no multiple."""
        fact = Eq(self.s, multiple + 128 * FloorDiv(self.s, 128)) if multiple < 64 else Eq(Mod(self.s, 64), 0)
        found = self.find([FloorDiv(self.s, 128)], [fact])
        assert [k for _, k in found.parts.values()] == ([128] if multiple == 0 else [])

    @pytest.mark.parametrize("fact", [Eq(Mod(Symbol("s", integer=True, positive=True), 2), 0), None])
    def test_a_guard_or_what_is_known(self, fact):
        found = self.find([FloorDiv(self.s, 2)], [fact] if fact is not None else [], lambda c: fact is None)
        assert found.wholes and not found.unproven

    @pytest.mark.parametrize(
        "fact",
        [
            sympy.true,
            Ge(Symbol("s", integer=True, positive=True), 6),
            Eq(Mod(Symbol("s", integer=True, positive=True), 3), 0),
            Eq(Mod(Symbol("u", integer=True, positive=True), 2), 0),
            Eq(Mod(Symbol("s", integer=True, positive=True), 4), 1),
        ],
        ids=str,
    )
    def test_facts_that_leave_another_remainder(self, fact):
        found = self.find([FloorDiv(self.s, 2)], [fact])
        assert not found.parts and found.unproven == (Eq(Mod(self.s, 2), 0),)

    def test_division_of_a_part(self):
        """Check that a fourth of a row in halves makes the row a multiple of 8."""
        fourth = FloorDiv(self.s, 4)
        facts = [Eq(Mod(self.s, 4), 0), Eq(FloorDiv(fourth + 1, 2), fourth - FloorDiv(fourth + 1, 2))]
        found = self.find([fourth, FloorDiv(fourth + 1, 2)], facts)
        assert list(found.parts.values()) == [(self.s, 8)]
        assert self.find([fourth, FloorDiv(fourth + 1, 2)], facts[:1]).unproven == (Eq(Mod(self.s, 8), 0),)

    def test_sizes_that_are_equal_are_one(self):
        """Check that a size has the symbol of its equal, and is a multiple where a guard says so of either."""
        twin = Symbol("twin", integer=True, positive=True)
        found = self.find([twin, self.s], equal={twin: self.s})
        assert found.rewrite(2 * twin + self.s) == 3 * self.s and not found.parts
        found = self.find([FloorDiv(twin, 2)], [Eq(Mod(twin, 2), 0)], equal={twin: self.s})
        (t,) = found.parts
        assert found.rewrite(twin) == 2 * t and found.rewrite(FloorDiv(twin, 2)) == t
        assert found.restore(t) == FloorDiv(self.s, 2)

    def test_products_of_sizes(self):
        found = self.find([FloorDiv(self.s, 2), FloorDiv(self.u, 2)], known=lambda c: True)
        t, v = found.parts
        assert found.restore(4 * t * v) == self.s * self.u
        assert found.restore(t * v) == FloorDiv(self.s, 2) * FloorDiv(self.u, 2)
        assert found.restore(Ge(2 * t - v, 1)) == Ge(self.s - FloorDiv(self.u, 2), 1)

    def test_equal_sizes(self):
        """Check sizes that equal a part: u is half a row, v that and one more, w a row of which nothing is divided."""
        v, w = (Symbol(name, integer=True, positive=True) for name in ("v", "w"))
        facts = [Eq(Mod(self.s, 2), 0), Eq(FloorDiv(self.s + 1, 2), self.u), Eq(v, self.u + 1), Eq(w, 2 * v)]
        found = self.find([FloorDiv(self.s, 2)], facts)
        (t,) = found.parts
        assert found.rewrite(self.u) == t and found.restore(t) == FloorDiv(self.s, 2)
        assert found.rewrite(w) is w and found.rewrite(v) is v

    def test_a_quotient_that_is_a_number(self):
        """Check a quotient that is a number: guards say that an image has whole windows, of 7 lines."""
        lines = FloorDiv(self.s, FloorDiv(self.s, 7))
        facts = [Eq(Mod(self.s, FloorDiv(self.s, 7)), 0), Eq(lines, 7)]
        found = self.find([FloorDiv(self.s, 7), lines], facts)
        (t,) = found.parts
        assert found.rewrite(FloorDiv(self.s, 7) * lines) == 7 * t == found.rewrite(self.s)
        assert not found.unproven
        assert not self.find([FloorDiv(self.s, 7), lines], facts[1:]).parts

    def test_the_larger_one_of_a_size_and_1_is_the_size_where_it_is_there(self):
        n = Symbol("n", integer=True)
        found = self.find([n, FloorDiv(n, 2)], [Eq(Mod(n, 2), 0)], lambda condition: condition == Ge(n, 0), there=[n])
        (t,) = found.parts
        assert found.rewrite(32 * Max(1, n) + n) == 33 * found.rewrite(n) and found.rewrite(n).free_symbols == {t}
        assert self.find([n]).rewrite(Max(1, n)) == Max(1, n)

    def test_assumed(self):
        found = self.find([FloorDiv(self.s, 2)], assume=True)
        assert found.wholes and found.unproven


def test_a_square_divided_by_its_side_was_no_size():
    """Check that a square divided by its side is the side: Inductor divides `s*s` rows by `s`."""
    side = sympy.Symbol("s7", integer=True, positive=True)
    assert Multiples().rewrite(FloorDiv(side * side, side)) == side
    halves = find_multiples([FloorDiv(side, 2)], [sympy.Eq(Mod(side, 2), 0)], lambda condition: False)
    (part,) = halves.parts
    assert halves.rewrite(FloorDiv(side * side, FloorDiv(side, 2))) == 4 * part
