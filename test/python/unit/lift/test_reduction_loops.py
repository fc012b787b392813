"""Test which loops of reductions a store is of."""

from __future__ import annotations

import contextlib

from ssa_values import operations

from bridge.affine.mlir_runtime import context, ir
from bridge.lowering.lift.reduction_loops import reduced_beside_lanes, reduces, reduction_loops

SUM = """%{name} = affine.for %k{name} = 0 to 16 iter_args(%a{name} = %v) -> (f32) {{
  %l{name} = affine.load %y[%k{name}] : memref<16xf32>
  %b{name} = arith.addf %a{name}, %l{name} : f32
  affine.yield %b{name} : f32 }}
"""


@contextlib.contextmanager
def stores(*lines):
    """The stores of values in a band iteration, and the loops of its sums `%s` and `%t`; some in four lanes."""
    text = "func.func @f(%x: memref<64xf32>, %y: memref<16xf32>, %v: f32) { affine.for %i = 0 to 16 {"
    text += SUM.format(name="s") + SUM.format(name="t") + "%u = arith.addf %s, %t : f32\n"
    for *lanes, value in map(str.split, lines):
        store = f"affine.store {value}, %x[%i] : memref<64xf32>"
        text += f"affine.for %j = 0 to 4 {{ {store} }}\n" if lanes else f"{store}\n"
    text += "} {bridge.band, bridge.parallel} return }"
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        sums = [loop for loop in operations(module, "affine.for") if list(loop.results)]
        yield operations(module, "affine.store"), sums


def test_lanes_do_not_reduce_what_the_band_iteration_stores():
    with stores("%s", "lanes %s") as ((own, in_lanes), (s, _)):
        beside = reduced_beside_lanes([own, in_lanes])
        assert beside == {s}
        assert reduction_loops([own], beside) == [s] and reduction_loops([in_lanes], beside) == []
        assert reduces(in_lanes)


def test_lanes_reduce_what_code_motion_took_out_of_them():
    with stores("%s", "lanes %t") as ((own, in_lanes), (_, t)):
        assert reduction_loops([in_lanes], reduced_beside_lanes([own, in_lanes])) == [t]


def test_what_is_stored_may_be_of_several_reductions():
    with stores("%u", "lanes %s", "lanes %t") as ((own, *in_lanes), sums):
        beside = reduced_beside_lanes([own, *in_lanes])
        assert beside == set(sums)
        assert not any(reduction_loops([store], beside) for store in in_lanes)


def test_a_store_without_a_reduction_has_none():
    with stores("%v", "lanes %v") as ((own, in_lanes), _):
        assert reduced_beside_lanes([own, in_lanes]) == set()
        assert reduction_loops([own, in_lanes], set()) == [] and not reduces(own)
