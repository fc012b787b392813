"""Test iteration spaces of affine IR, drawn."""

from __future__ import annotations

from bridge.diagnostics.html_spaces import draw, read_spaces


def test_iteration_spaces():
    text = """
    func.func @f(%in: memref<64x96xf32>, %rows: memref<64xf32>, %out: memref<64x96xf32>) {
      affine.for %i = 0 to 64 {
        %zero = arith.constant 0.0 : f32
        %s = affine.for %j = 0 to 48 iter_args(%t = %zero) -> (f32) {
          %x = affine.load %in[%i, %j] : memref<64x96xf32>
          %y = affine.load %in[%i, %j + 48] : memref<64x96xf32>
          %u = arith.addf %x, %y : f32
          %v = arith.addf %t, %u : f32
          affine.yield %v : f32
        }
        affine.store %s, %rows[%i] : memref<64xf32>
        affine.for %j = 0 to 96 {
          affine.if affine_set<(d0) : (d0 - 8 >= 0)>(%j) {
            affine.store %s, %out[%i, %j] : memref<64x96xf32>
          }
        }
      } {bridge.band, bridge.nodes = ["op0", "op1"]}
      return
    }
    """
    (space,) = read_spaces(text, {})
    assert space.nodes == ["op0", "op1"] and space.root.band and space.root.extents == [64]
    reduction, lanes = space.root.inner
    assert reduction.reduces and reduction.pieces == {"?": ["[d0, d1]", "[d0, d1 + 48]"]}
    assert lanes.extents == [96] and lanes.guards == ["d0 - 8 >= 0"]
    drawn = draw([space])
    assert drawn.count("<rect") == 4 and 'class="guard"' in drawn and "reduction over 48" in drawn
