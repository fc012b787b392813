"""Test operations and loops of affine IR, counted."""

from __future__ import annotations

from bridge.diagnostics.counts import count


def test_counts_of_written_and_executed_operations():
    module = """
    func.func @f(%in: memref<?x8xf32>, %out: memref<?xf32>, %n: index) {
      affine.for %i = 0 to %n {
        %zero = arith.constant 0.0 : f32
        %sum = affine.for %j = 0 to 8 step 2 iter_args(%s = %zero) -> (f32) {
          %x = affine.load %in[%i, %j] : memref<?x8xf32>
          %t = arith.addf %s, %x : f32
          affine.yield %t : f32
        }
        %r = math.rsqrt %sum : f32
        affine.store %r, %out[%i] : memref<?xf32>
      }
      return
    }
    """.replace("%n: index", '%n: index {bridge.size = "n"}').replace("%in: memref<?x8xf32>", "%in: memref<?x8xf32> {}")
    counts = count(module, {"n": 3})
    assert (counts.nests, counts.loops, counts.loads, counts.stores, counts.operations) == (1, 2, 1, 1, 2)
    assert counts.executed == 3 * 4 + 3


def test_a_gather_is_a_load():
    module = """
    func.func @f(%table: memref<8xf32>, %ids: memref<4xi64>, %out: memref<4xf32>) {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      affine.for %i = 0 to 4 {
        %id = affine.load %ids[%i] : memref<4xi64>
        %x = bridge.gather %table[%zero] at (%id) of (%one) by (%one)
            {checks = array<i1: true>, wraps = array<i1: true>} : memref<8xf32>, i64
        affine.store %x, %out[%i] : memref<4xf32>
      }
      return
    }
    """
    counts = count(module, {})
    assert (counts.loads, counts.stores, counts.operations) == (2, 1, 0)
