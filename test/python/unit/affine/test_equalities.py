"""What is rounded as memory would have rounded it, since something is asked to equal it."""

from __future__ import annotations

import pytest

from bridge.affine.equalities import compared_loads
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
    %6 = arith.cmpf {comparison} : f32
    %7 = arith.select %6, %1, %zero : f32
    affine.store %7, %out[%i] : memref<64xf32>
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
