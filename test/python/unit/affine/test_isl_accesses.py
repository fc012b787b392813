"""Test what iterations touch which elements, read off affine functions."""

from __future__ import annotations

import islpy as isl
import pytest

from bridge.affine.isl_accesses import FunctionAccesses, group_by_memref
from bridge.affine.mlir_runtime import context, ir
from bridge.reasons import InvariantError

GUARDED = """
func.func @f(%n: index, %in: memref<?xf32>, %out: memref<?xf32>) {
  affine.for %i = 0 to %n {
    affine.if affine_set<(d0) : (d0 - 3 >= 0)>(%i) {
      %x = affine.load %in[%i - 3] : memref<?xf32>
      affine.store %x, %out[%i] : memref<?xf32>
    } else {
      %x = affine.load %in[%i * 2] : memref<?xf32>
      affine.store %x, %out[%i] : memref<?xf32>
    }
  }
  return
}
"""

LOOPS = """
func.func @f(%n: index, %out: memref<64xf32>) {
  %c = arith.constant 1.0 : f32
  affine.for %i = 0 to 8 {
    affine.store %c, %out[%i] : memref<64xf32>
    affine.store %c, %out[%i + 8] : memref<64xf32>
  }
  affine.for %j = 0 to 8 {
    affine.store %c, %out[%j + 8] : memref<64xf32>
  }
  affine.for %k = 0 to %n {
    affine.store %c, %out[%k] : memref<64xf32>
  }
  return
}
"""


@pytest.fixture
def read():
    """Return a reader of the function of a module, which lives as long as the test."""
    modules = []

    def accesses(text):
        modules.append(ir.Module.parse(text))
        return FunctionAccesses(modules[-1].body.operations[0].operation)

    with context(), ir.Location.unknown():
        yield accesses


def test_each_branch_of_a_guard_has_its_own_iterations(read):
    accesses = read(GUARDED)
    first, _, third, _ = accesses.found
    assert accesses.sizes == ["n0"]
    wanted = ["i >= 3 and e = i - 3", "i < 3 and e = 2 * i"]
    for access, condition in zip((first, third), wanted, strict=True):
        expected = isl.Map(f"[n0] -> {{ [i] -> [e] : 0 <= i < n0 and {condition} }}")
        assert accesses.relation(access, access.loops).is_equal(expected)


def test_accesses_are_grouped_by_the_number_of_the_argument(read):
    groups = group_by_memref(read(GUARDED).found)
    assert {memref: [access.writes for access in own] for memref, own in groups.items()} == {
        1: [False, False],
        2: [True, True],
    }


def test_bounds_are_compared_without_the_names_of_loops(read):
    accesses = read(LOOPS)
    one, _, other, symbolic = (access.loops for access in accesses.found)
    assert accesses.have_equal_bounds(one, other)
    assert not accesses.have_equal_bounds(one, symbolic)
    assert not accesses.have_equal_bounds(one, [*other, *other])


def test_accesses_of_one_loop_are_shifted_by_so_many_iterations(read):
    accesses = read(LOOPS)
    near, far, elsewhere, _ = accesses.found
    assert accesses.is_shifted(near, far, 8)
    assert not accesses.is_shifted(near, far, 7)
    assert not accesses.is_shifted(far, near, 8)
    assert not accesses.is_shifted(near, elsewhere, 8)


def test_what_bridge_does_not_make_is_a_bug_and_no_error_of_the_walk(read):
    symbolic = GUARDED.replace("%in[%i - 3]", "%in[symbol(%k)]").replace(
        "  affine.for", "  %k = arith.addi %n, %n : index\n  affine.for", 1
    )
    with pytest.raises(InvariantError, match="made by arith.addi"):
        read(symbolic)
    own = LOOPS.replace("affine.for %j", "%own = memref.alloc() : memref<64xf32>\n  affine.for %j")
    with pytest.raises(InvariantError, match="no argument"):
        read(own.replace("%out[%j + 8]", "%own[%j + 8]"))
