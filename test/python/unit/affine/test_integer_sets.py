"""Test the constraints of an integer set, read through MLIR's bindings."""

from __future__ import annotations

from bridge.affine.integer_sets import read_integer_set
from bridge.affine.mlir_runtime import context, ir


def test_constraints_are_the_results_of_a_map():
    with context(), ir.Location.unknown():
        attribute = ir.Attribute.parse("affine_set<(d0, d1)[s0] : (d0 mod 4 - 2 >= 0, d1 - s0 == 0)>")
        affine_map, are_equalities = read_integer_set(attribute)
        assert str(affine_map) == "(d0, d1)[s0] -> (d0 mod 4 - 2, d1 - s0)"
    assert are_equalities == [False, True]


def test_an_empty_set_has_a_constraint_that_never_holds():
    with context(), ir.Location.unknown():
        affine_map, are_equalities = read_integer_set(ir.Attribute.parse("affine_set<() : (1 == 0)>"))
        assert [result.value for result in affine_map.results] == [1]
    assert are_equalities == [True]
