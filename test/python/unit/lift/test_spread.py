"""Test that each lane computes what one iteration of a band computes for all, where nothing else is reduced."""

from __future__ import annotations

import contextlib

import pytest
from ssa_values import operations

from bridge.affine.mlir_runtime import context, ir
from bridge.lowering.lift.lanes import find_store_nest
from bridge.lowering.lift.spread import spread_over_lanes


@contextlib.contextmanager
def nests(*lanes, guarded=""):
    """Yield a node's nest for each list of extents, in one loop of the band; in the last one the store is guarded."""
    text = "#first = affine_set<(d0) : (-d0 >= 0)>\nfunc.func @f(%x: memref<?xf32>, %n: index, %v: f32) {"
    text += "affine.for %i = 0 to 16 {"
    for number, extents in enumerate(lanes):
        store = "affine.store %v, %x[%i] : memref<?xf32>"
        if number == len(lanes) - 1 and guarded:
            store = f"affine.if #first({guarded}) {{ {store} }}"
        loops = "".join(f"affine.for %j{n} = 0 to {extent} {{ " for n, extent in enumerate(extents))
        text += loops + store + " }" * len(extents) + "\n"
    text += "} {bridge.band, bridge.parallel} return }"
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        stores = operations(module, "affine.store")
        yield {f"op{n}": find_store_nest(f"op{n}", [store], []) for n, store in enumerate(stores)}


@pytest.mark.parametrize("lanes", [([4, 8],), (["%n"],), ([4, "%n"], [4, "%n"])], ids=str)
def test_a_node_without_lanes_gets_those_of_the_others(lanes):
    with nests([], *lanes) as found:
        spread = spread_over_lanes(found)
        assert spread["op0"].lanes == spread["op1"].lanes == found["op1"].lanes
        assert spread["op0"].band == found["op0"].band and found["op0"].lanes == []
        assert spread["op1"] is found["op1"]


@pytest.mark.parametrize("lanes", [([], [4], [8]), ([], [4], [2, 2]), ([], ["%n"], [4]), ([], [])], ids=str)
def test_lanes_that_differ_are_left(lanes):
    with nests(*lanes) as found:
        assert spread_over_lanes(found) == found


def test_lanes_under_a_guard_are_lanes_of_all():
    """Check that what a node without lanes computes is in the lanes of a node that only some of them store."""
    with nests([], [4], [4], guarded="%j0") as found:
        spread = spread_over_lanes(found)
        assert spread["op0"].lanes == found["op1"].lanes
        assert spread["op2"] is found["op2"] and spread["op2"].guards


def test_a_guard_around_what_has_no_lanes_is_left():
    with nests([4], [], guarded="%i") as found:
        assert spread_over_lanes(found) == found


def test_a_band_that_reduces_is_left():
    with nests([], [4]) as found:
        reducing = {**found, "op0": find_store_nest("op0", list(found["op0"].guards), found["op1"].lanes)}
        assert spread_over_lanes(reducing) == reducing
