"""Test that affine maps and sets of MLIR's become isl's, by islpy's constructors."""

from __future__ import annotations

import islpy as isl
import pytest

from bridge.affine.isl_relations import apply_map, apply_set, make_relation, variable
from bridge.affine.mlir_runtime import context, ir


def test_affine_maps_are_converted():
    with context(), ir.Location.unknown():
        attribute = ir.Attribute.parse(
            "affine_map<(d0, d1)[s0] -> (d0 floordiv 4 + s0, d1 mod 3 - d0 ceildiv 2, d0 * -2 + 1)>"
        )
        results = apply_map(attribute.value, [variable("a"), variable("b"), variable("n")])
    expected = ["floor(a / 4) + n", "(b mod 3) - ceil(a / 2)", "-2 * a + 1"]
    for result, text in zip(results, expected, strict=True):
        wanted = isl.Set(f"[a, b, n, e] -> {{ : e = {text} }}")
        assert variable("e").eq_set(result).is_equal(wanted)


def test_integer_sets_are_converted():
    with context(), ir.Location.unknown():
        attribute = ir.Attribute.parse("affine_set<(d0)[s0] : (d0 - 8 >= 0, d0 - s0 * 2 == 0)>")
        condition = apply_set(attribute, [variable("a"), variable("n")])
    assert condition.is_equal(isl.Set("[a, n] -> { : a >= 8 and a = 2 * n }"))


def test_left_over_variables_of_a_relation_exist():
    condition = variable("e").eq_set(variable("a").add(variable("k"))).intersect(variable("k").lt_set(variable("n")))
    relation = make_relation(condition, ["n"], ["a"], ["e"])
    assert relation.is_equal(isl.Map("[n] -> { [a] -> [e] : exists k: e = a + k and k < n }"))


@pytest.mark.parametrize("text", ["s0 * d0", "d0 floordiv s0", "d0 mod s0"])
def test_semi_affine_maps_are_errors_of_isl(text):
    with context(), ir.Location.unknown():
        affine_map = ir.AffineMapAttr.parse(f"affine_map<(d0)[s0] -> ({text})>").value
        with pytest.raises(isl.Error):
            apply_map(affine_map, [variable("a"), variable("n")])
