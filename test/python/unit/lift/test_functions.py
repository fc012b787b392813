"""Test that each band of a function is lifted by itself."""

from __future__ import annotations

import pytest

from bridge.affine.mlir_runtime import context, ir
from bridge.lowering.lift.band import FunctionTables
from bridge.lowering.lift.functions import lift_function, loads_read_again, loads_rounded_again
from bridge.reasons import Reason, Unsupported
from bridge.support.error_boundary import boundary

#: The first band stores an element of a row at two places before it loads the row; the second adds.
TWO_BANDS = """func.func @f(%x: memref<16x8xf32>, %y: memref<16x8xf32>, %z: memref<16x8xf32>, %u: memref<16x8xf32>) {
  %c = arith.constant 1.0 : f32
  affine.for %i = 0 to 16 {
    affine.for %j = 0 to 4 {
      affine.store %c, %x[%i, %j] : memref<16x8xf32>
      affine.store %c, %x[%i, %j + 4] : memref<16x8xf32> }
    affine.for %j = 0 to 4 {
      %w = affine.load %x[%i, %j] : memref<16x8xf32>
      affine.store %w, %y[%i, %j] : memref<16x8xf32> }
  } {bridge.band, bridge.parallel, bridge.kernels = [0, 2], bridge.nodes = ["op0", "op2"]}
  affine.for %i = 0 to 16 {
    affine.for %j = 0 to 8 {
      %v = affine.load %z[%i, %j] : memref<16x8xf32>
      %w = arith.addf %v, %c : f32
      affine.store %w, %u[%i, %j] : memref<16x8xf32> }
  } {bridge.band, bridge.parallel, bridge.kernels = [1], bridge.nodes = ["op1"]}
  return }"""


def lift(refuse=None):
    """Lift the bands of `TWO_BANDS`; return the nodes of each, with the numbers of its kernels."""
    stores = {"op0": {"buf0"}, "op1": {"buf3"}, "op2": {"buf1"}}
    tables = FunctionTables([(f"buf{number}", [8, 1]) for number in range(4)], [])
    with context(), ir.Location.unknown():
        module = ir.Module.parse(TWO_BANDS)
        bands = lift_function(module.body.operations[0].operation, tables, stores, refuse)
        return [([node.name for node in band.nodes], band.kernels) for band in bands]


def test_a_band_without_a_lift_leaves_the_others_theirs():
    refused = []
    with boundary(strict=True, refuse=pytest.fail):
        assert lift(lambda *why: refused.append(why)) == [(["op1"], [1])]
    ((reason, detail),) = refused
    assert reason is Reason.not_liftable and "op0: buf0 is stored at several places" in detail


def test_it_is_unsupported_where_nobody_asks():
    with pytest.raises(Unsupported, match="op0: buf0 is stored at several places"):
        lift()


@pytest.mark.parametrize(
    ("name", "kernels", "count"),
    [("buf0", {1}, 1), ("buf0", {-1}, 1), ("buf0", {0, 2}, 0), ("buf2", {1}, 0)],
    ids=["another band", "outside", "the same band", "only loaded"],
)
def test_what_a_band_loads_as_another_kernel_does(name, kernels, count):
    tables = FunctionTables([(f"buf{n}", [8, 1]) for n in range(4)], [], read_again={name: frozenset(kernels)})
    with context(), ir.Location.unknown():
        module = ir.Module.parse(TWO_BANDS)
        entry = module.body.operations[0].operation.regions[0].blocks[0]
        root = next(op.operation for op in entry.operations if op.operation.name == "affine.for")
        assert len(loads_read_again(root, entry, tables)) == count


#: The first loop stores the elements of a row; then each lane computes one of them again, and loads its own.
COMPUTED_AGAIN = """func.func @f(%x: memref<16x8xf32>, %y: memref<16x8xbf16>, %z: memref<16x8xf32>) {
  affine.for %i = 0 to 16 {
    affine.for %j = 0 to 8 {
      %v = affine.load %x[%i, %j] : memref<16x8xf32>
      %w = arith.truncf %v : f32 to bf16
      affine.store %w, %y[%i, %j] : memref<16x8xbf16> }
    affine.for %j = 0 to 8 {
      %first = affine.load %x[%i, 0] : memref<16x8xf32>
      %a = arith.truncf %first MODE : f32 to bf16
      %b = arith.extf %a : bf16 to f32
      %own = affine.load %y[%i, %j] : memref<16x8xbf16>
      %c = arith.extf %own : bf16 to f32
      %d = arith.subf %c, %b : f32
      affine.store %d, %z[%i, %j] : memref<16x8xf32> }
  } {bridge.band, bridge.parallel, bridge.kernels = [0, 1], bridge.nodes = ["op0", "op1"]}
  return }"""


@pytest.mark.parametrize(
    ("mode", "loads", "count"),
    [("", {"op1": {"buf0", "buf1"}}, 1), ("to_nearest_even", {"op1": {"buf0", "buf1"}}, 0), ("", {"op0": {"buf1"}}, 0)],
    ids=["of a store", "of the program", "read by the kernel that stores it"],
)
def test_what_a_band_computes_again_is_what_it_loads(mode, loads, count):
    """Check that a lane's own element is rounded where lanes round those of others, as the store would have."""
    tables = FunctionTables([(f"buf{n}", [8, 1]) for n in range(3)], [], loads_of=loads)
    with context(), ir.Location.unknown():
        module = ir.Module.parse(COMPUTED_AGAIN.replace("MODE", mode))
        entry = module.body.operations[0].operation.regions[0].blocks[0]
        (root,) = [op.operation for op in entry.operations if op.operation.name == "affine.for"]
        found = loads_rounded_again(root, entry, tables, {"op0": {"buf1"}, "op1": {"buf2"}})
        assert [str(value.owner.name) for value in found] == ["affine.load"] * count
