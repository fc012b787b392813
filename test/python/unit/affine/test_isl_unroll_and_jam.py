"""Test which copy of an unrolled body an access is in."""

from __future__ import annotations

import pytest

from bridge.affine.isl_accesses import FunctionAccesses
from bridge.affine.isl_unroll_and_jam import constant_extent, find_unrolled_copies
from bridge.affine.mlir_runtime import context, ir

#: The loop of 12 iterations in three copies, the stores of which are not in order.
UNROLLED = """
func.func @f(%in: memref<12xf32>, %scale: memref<1xf32>, %out: memref<12xf32>) {
  affine.for %i = 0 to 4 {
    %s = affine.load %scale[0] : memref<1xf32>
    %a = affine.load %in[%i] : memref<12xf32>
    %b = affine.load %in[%i + 4] : memref<12xf32>
    %c = affine.load %in[%i + 8] : memref<12xf32>
    %x = arith.mulf %a, %s : f32
    %y = arith.mulf %b, %s : f32
    %z = arith.mulf %c, %s : f32
    affine.store %y, %out[%i + 4] : memref<12xf32>
    affine.store %x, %out[%i] : memref<12xf32>
    affine.store %z, %out[%i + 8] : memref<12xf32>
  }
  return
}
"""

OTHERS = """
func.func @f(%n: index, %in: memref<64xf32>, %out: memref<64xf32>) {
  affine.for %i = 0 to 4 {
    %x = affine.load %in[%i] : memref<64xf32>
    affine.store %x, %out[%i] : memref<64xf32>
    affine.store %x, %out[%i + 5] : memref<64xf32>
  }
  affine.for %i = 0 to %n {
    %x = affine.load %in[%i] : memref<64xf32>
    affine.store %x, %out[%i] : memref<64xf32>
    affine.store %x, %out[%i + 4] : memref<64xf32>
  }
  return
}
"""


@pytest.fixture
def read():
    """Return a function that reads accesses of a module, which lives as long as the test, and finds unrolled copies."""
    modules = []

    def found(text):
        modules.append(ir.Module.parse(text))
        accesses = FunctionAccesses(modules[-1].body.operations[0].operation)
        find_unrolled_copies(accesses.found, accesses.is_shifted)
        return accesses.found

    with context(), ir.Location.unknown():
        yield found


def test_copies_are_numbered_by_what_they_store(read):
    found = read(UNROLLED)
    assert [access.copies for access in found if access.writes] == [(1,), (0,), (2,)]
    assert {access.factor for access in found} == {3}
    assert all(access.unrolled == access.loops[-1] for access in found)


def test_a_load_is_in_the_copies_that_its_value_goes_into(read):
    assert [access.copies for access in read(UNROLLED) if not access.writes] == [(0, 1, 2), (0,), (1,), (2,)]


def test_other_loops_are_not_unrolled(read):
    """Check that stores of other numbers of iterations, and a loop of symbolic extent, do not count as unrolled."""
    found = read(OTHERS)
    assert len(found) == 6
    assert {(access.unrolled, access.factor, access.copies) for access in found} == {(None, 1, (0,))}


def test_only_a_number_is_a_constant_extent(read):
    found = read(OTHERS)
    assert constant_extent(found[0].loops[-1]) == 4
    assert constant_extent(found[-1].loops[-1]) is None
