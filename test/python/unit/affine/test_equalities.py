"""Test what is rounded as memory would have rounded it, since something is asked to equal it."""

from __future__ import annotations

import pytest

from bridge.affine.equalities import compared_loads, mark_compared_roundings, mark_stored_roundings
from bridge.affine.mlir_runtime import context, ir

FUNCTION = """
func.func @f(%x: memref<64xf32>, %y: memref<64xbf16>, %m: memref<1xbf16>, %n: memref<1xf32>, %out: memref<64xf32>) {{
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {{
    %0 = affine.load %x[%i] : memref<64xf32>
    %1 = arith.truncf %0 : f32 to bf16
    affine.store %1, %y[%i] : memref<64xbf16>
  }}
  %most = affine.for %i = 0 to 64 iter_args(%s = %zero) -> (f32) {{
    %0 = affine.load %y[%i] : memref<64xbf16>
    %1 = arith.extf %0 : bf16 to f32
    %2 = arith.maximumf %s, %1 : f32
    affine.yield %2 : f32
  }}
  affine.store %most, %n[0] : memref<1xf32>
  affine.for %i = 0 to 64 {{
    %0 = affine.load %y[%i] : memref<64xbf16>
    %1 = arith.extf %0 : bf16 to f32
    %2 = arith.mulf %1, %1 : f32
    %3 = affine.load %m[0] : memref<1xbf16>
    %4 = arith.extf %3 : bf16 to f32
    %5 = affine.load %n[0] : memref<1xf32>
    %6 = bridge.convert %2 {{from = "float32", to = "bfloat16"}} : f32 -> bf16
    %7 = arith.extf %6 : bf16 to f32
    %8 = arith.cmpf {comparison} : f32
    %9 = arith.select %8, %1, %zero : f32
    affine.store %9, %out[%i] : memref<64xf32>
  }}
  return
}}
"""


@pytest.mark.parametrize(
    ("comparison", "loads"),
    [
        ("oeq, %1, %4", 1),
        ("une, %2, %4", 1),  # through arithmetic
        ("oeq, %1, %5", 2),  # through the maximum, which is of the same elements
        ("oeq, %2, %zero", 0),  # both roundings of what is not zero are not zero
        ("ogt, %1, %4", 0),
        ("oeq, %4, %4", 0),  # no kernel of the function has stored it
    ],
)
def test_what_an_equality_depends_on_of_what_is_stored(comparison, loads):
    with context():
        module = ir.Module.parse(FUNCTION.format(comparison=comparison))
        found = compared_loads(module.body.operations[0].operation)
        assert len(found) == loads
        assert all(value.owner.name == "affine.load" for value in found)


@pytest.mark.parametrize(
    ("comparison", "marked"),
    [
        ("oeq, %1, %4", 1),
        ("oeq, %7, %4", 1),  # not the one that was never in memory
        ("oeq, %4, %4", 0),
        ("olt, %1, %4", 0),
    ],
)
@pytest.mark.parametrize(
    "rounding",
    ["arith.truncf %0 : f32 to bf16", 'bridge.convert %0 {{from = "float32", to = "bfloat16"}} : f32 -> bf16'],
)
def test_which_roundings_are_meant(comparison, marked, rounding):
    with context():
        module = ir.Module.parse(
            FUNCTION.replace("arith.truncf %0 : f32 to bf16", rounding).format(comparison=comparison)
        )
        mark_compared_roundings(module.body.operations[0].operation)
        assert module.operation.verify()
        assert str(module).count("to_nearest_even") == marked


def test_the_rounding_of_a_reduction_is_not_marked():
    text = FUNCTION.replace("%n: memref<1xf32>", "%n: memref<1xbf16>").replace(
        "%n[0] : memref<1xf32>", "%n[0] : memref<1xbf16>"
    )
    text = text.replace("affine.store %most,", "%least = arith.truncf %most : f32 to bf16\n  affine.store %least,")
    text = text.replace("bridge.convert %2 {{", "bridge.convert %11 {{").replace(
        "%6 = bridge", "%11 = arith.extf %5 : bf16 to f32\n    %6 = bridge"
    )
    with context():
        module = ir.Module.parse(text.format(comparison="oeq, %11, %4"))
        mark_compared_roundings(module.body.operations[0].operation)
        assert str(module).count("to_nearest_even") == 1  # of the elements, which the maximum is of


@pytest.mark.parametrize(("argument", "marked"), [(1, 1), (0, 0), (4, 0)])
def test_the_roundings_of_what_is_stored_to_a_memref(argument, marked):
    with context():
        module = ir.Module.parse(FUNCTION.format(comparison="olt, %1, %4"))
        function = module.body.operations[0].operation
        mark_stored_roundings(function.regions[0].blocks[0].arguments[argument])
        assert module.operation.verify()
        assert str(module).count("to_nearest_even") == marked
