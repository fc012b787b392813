"""Test what a lane may do where the guard around it is off."""

from __future__ import annotations

import pytest
from ssa_values import operations

from bridge.affine.mlir_runtime import context, ir
from bridge.lowering.lift.guards import computes_anywhere, is_always_inside, is_narrow, is_under

SHIFTED = "affine_set<(d0) : (d0 - 1 >= 0)>"


def looked_at(text, look):
    with context() as own, ir.Location.unknown():
        own.allow_unregistered_dialects = True
        return look(ir.Module.parse(text))


def guarded(body, memref="16x8xf32", extent="16"):
    """Return loops over %i and %j, and a value under a guard."""
    return f"""func.func @f(%x: memref<{memref}>, %n: index) {{
      affine.for %i = 0 to {extent} {{ affine.for %j = 0 to 8 {{
        %around = arith.constant 1.0 : f32
        %g = affine.if {SHIFTED}(%i) -> f32 {{ {body} affine.yield %v : f32 }}
        else {{ %zero = arith.constant 0.0 : f32 affine.yield %zero : f32 }}
        "test.use"(%g) : (f32) -> ()
      }} }} return }}"""


@pytest.mark.parametrize(
    ("subscripts", "inside"),
    [
        ("%i, %j", True),
        ("%i - 1, %j", False),
        ("%i, %j + 1", False),
        ("%i floordiv 2, 7 - %j", True),
        ("(%i * 8 + %j) floordiv 8, (%i * 8 + %j) mod 8", True),
        ("(%i * 8 + %j + 8) floordiv 8, %j", False),
        ("%i, (%i * 3 - 5) mod 8", True),
        ("%i, symbol(%n)", False),
        ("%i * symbol(%n), 0", False),
    ],
)
def test_a_load_is_inside_whatever_its_guard_says(subscripts, inside):
    text = guarded(f"%v = affine.load %x[{subscripts}] : memref<16x8xf32>")
    assert looked_at(text, lambda m: is_always_inside(operations(m, "affine.load")[0])) == inside


@pytest.mark.parametrize(("memref", "extent"), [("?x8xf32", "16"), ("16x8xf32", "%n")])
def test_nothing_is_known_of_symbolic_sizes(memref, extent):
    text = guarded(f"%v = affine.load %x[%i, %j] : memref<{memref}>", memref, extent)
    assert not looked_at(text, lambda m: is_always_inside(operations(m, "affine.load")[0]))


def test_what_a_map_made_of_variables_has_a_range():
    text = guarded("""%a = affine.apply affine_map<(d0) -> (d0 + 1)>(%j)
      %v = affine.load %x[%i, %a - 1] : memref<16x8xf32>""")
    assert looked_at(text, lambda m: is_always_inside(operations(m, "affine.load")[0]))


REDUCED = """%v = affine.for %k = 0 to 8 iter_args(%s = %around) -> f32 {
  %e = affine.load %x[%i, %k] : memref<16x8xf32>
  %t = arith.addf %s, %e : f32
  affine.yield %t : f32 }"""
NESTED = f"""%v = affine.if {SHIFTED}(%j) -> f32 {{ {REDUCED.replace("%v", "%w")} affine.yield %w : f32 }}
  else {{ affine.yield %around : f32 }}"""


@pytest.mark.parametrize(
    ("body", "anywhere"),
    [("%v = affine.load %x[%i - 1, %j] : memref<16x8xf32>", True), (REDUCED, False), (NESTED, False)],
    ids=["a load", "a reduction", "a reduction under two guards"],
)
def test_what_needs_other_lanes_needs_its_guard(body, anywhere):
    assert looked_at(guarded(body), lambda m: computes_anywhere(operations(m, "affine.if")[0])) == anywhere


def test_a_value_is_under_the_guard_that_computes_it():
    """Check that a value is under the guard that computes it, and the guard's result is not."""

    def look(module):
        guard, (load,) = operations(module, "affine.if")[0], operations(module, "affine.load")
        around = next(c for c in operations(module, "arith.constant") if c.parent != guard)
        return [is_under(value, guard) for value in (load.results[0], guard.results[0], around.results[0])]

    assert looked_at(guarded("%v = affine.load %x[%i, %j] : memref<16x8xf32>"), look) == [True, False, False]


@pytest.mark.parametrize(
    ("condition", "operands", "narrow"),
    [
        ("(d0) : (d0 - 1 >= 0)", "(%i)", True),
        ("(d0) : (d0 * 70000000 - 1 >= 0)", "(%i)", True),
        ("(d0) : (d0 * 80000000 - 1 >= 0)", "(%i)", False),
        ("(d0, d1) : (d0 - 1 >= 0, d1 + 2000000000 >= 0)", "(%i, %j)", False),
        ("(d0)[s0] : (d0 - s0 >= 0)", "(%i)[%n]", False),
        ("(d0)[s0] : ((d0 + s0) mod 56 - 49 >= 0)", "(%i)[%n]", True),
    ],
)
def test_what_is_compared_is_narrow_where_its_range_is_known(condition, operands, narrow):
    text = guarded("%v = arith.constant 2.0 : f32").replace(f"{SHIFTED}(%i)", f"affine_set<{condition}>{operands}")
    assert looked_at(text, lambda m: is_narrow(operations(m, "affine.if")[0])) == narrow
