"""Loops around a store: which are the band's and which are lanes of a row, and the digits of a lane's number."""

from __future__ import annotations

import contextlib
import functools

import pytest
import sympy
from ssa_values import operations

from bridge.affine.mlir_runtime import context, ir
from bridge.lowering.lift.band import FunctionTables, lift_band
from bridge.lowering.lift.lanes import (
    StoreNest,
    alike,
    digits,
    find_store_nest,
    known_extents,
    repeated_lanes,
    segment_length,
)
from bridge.reasons import InvariantError, Reason, Unsupported

PROVEN = "{bridge.band, bridge.parallel}"


@contextlib.contextmanager
def nests(band=PROVEN, extents=(4,)):
    """For each extent a loop of so many lanes with a store, in one loop of the band: (stores, loops)."""
    lanes = "".join(f"affine.for %j = 0 to {e} {{ affine.store %v, %x[%i, %j] : memref<?x?xf32> }} " for e in extents)
    text = f"""func.func @f(%x: memref<?x?xf32>, %n: index, %v: f32) {{
      affine.for %i = 0 to 16 {{ {lanes} }} {band} return }}"""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        yield operations(module, "affine.store"), operations(module, "affine.for")


def test_loops_below_the_band_are_lanes():
    with nests() as (stores, (band, lanes)):
        nest = find_store_nest("op0", stores, [])
        assert (nest.band, nest.lanes, nest.count) == ([band], [lanes], 4)


def test_a_nest_without_a_band_has_no_lanes():
    with nests(band="") as (stores, loops):
        nest = find_store_nest("op0", stores, [])
        assert (nest.band, nest.lanes) == (loops, [])


def test_what_is_no_nest_is_refused():
    with nests(extents=(4, 4)) as (stores, _), pytest.raises(Unsupported, match="different loops") as raised:
        find_store_nest("op0", stores, [])
    assert raised.value.reason is Reason.not_liftable
    with nests(band="{bridge.band}") as (stores, _), pytest.raises(InvariantError, match="without the proof"):
        find_store_nest("op0", stores, [])


def test_segments_of_a_row():
    with nests(extents=(4, "%n")) as (_, (band, four, symbolic)):
        assert known_extents([band, symbolic]) == [16]
        assert segment_length(StoreNest([band], [four], []), 12) == 3
        assert segment_length(StoreNest([band], [four], []), 4) is None
        assert segment_length(StoreNest([band], [four], [band]), 64) == 16
        assert segment_length(StoreNest([band], [symbolic], []), 12) is None
        with pytest.raises(Unsupported, match="4 lanes in a row of 10"):
            segment_length(StoreNest([band], [four], []), 10)


def test_lanes_that_share_an_element_of_a_reduction():
    with nests(extents=(4, "%n")) as (_, (sixteen, four, symbolic)):
        assert repeated_lanes(StoreNest([], [], [four]), 12) == 3
        assert repeated_lanes(StoreNest([], [sixteen], [four]), 64) == 1
        assert repeated_lanes(StoreNest([], [four], []), 12) == 1
        assert repeated_lanes(StoreNest([], [], [symbolic]), 12) == 1
        assert repeated_lanes(StoreNest([], [], [four]), None) == 1
        with pytest.raises(Unsupported, match="4 lanes in a row of 10"):
            repeated_lanes(StoreNest([], [], [four]), 10)


def test_loops_of_the_same_extents_are_the_same_lanes():
    with nests(extents=(4, 4, 8, "%n")) as (_, (band, one, same, eight, symbolic)):
        assert alike([[one], [eight], [band, same], [symbolic]], [same]) == [[one]]
        assert alike([[eight, one], [one, eight]], [one, eight]) == [[one, eight]]
        assert alike([[symbolic]], [symbolic]) == [], "nobody says that two symbols are alike"


def test_digits_of_every_number():
    lane = sympy.Symbol("lane", integer=True, nonnegative=True)
    found = digits(lane, [3, 4, 5])
    numbers = [tuple(int(digit.subs(lane, n)) for digit in found) for n in range(60)]
    assert numbers == [(a, b, c) for a in range(3) for b in range(4) for c in range(5)]


def two_places(lanes):
    """A loop that stores two elements of a row an iteration, and one of `lanes` iterations that loads the row."""
    return f"""func.func @f(%x: memref<16x8xf32>, %y: memref<16x8xf32>) {{
      %v = arith.constant 1.0 : f32
      affine.for %i = 0 to 16 {{
        affine.for %j = 0 to 4 {{
          affine.store %v, %x[%i, %j] : memref<16x8xf32>
          affine.store %v, %x[%i, %j + 4] : memref<16x8xf32> }}
        affine.for %j = 0 to {lanes} {{
          %w = affine.load %x[%i, %j] : memref<16x8xf32>
          affine.store %w, %y[%i, %j] : memref<16x8xf32> }}
      }} {{bridge.band, bridge.parallel, bridge.kernels = [0, 1], bridge.nodes = ["op0", "op1"]}}
      return }}"""


@pytest.mark.parametrize(("lanes", "simt_target", "refused"), [(4, True, True), (4, False, True), (8, False, False)])
def test_a_buffer_is_not_read_beside_stores_at_several_places(lanes, simt_target, refused):
    """Inductor would take the element that was stored last for any; C++ loops of other extents are other loops."""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(two_places(lanes))
        entry = module.body.operations[0].regions[0].blocks[0]
        tables = FunctionTables([("buf0", [8, 1]), ("buf1", [8, 1])], [], simt_target)
        root = next(op.operation for op in entry.operations if op.operation.name == "affine.for")
        lift = functools.partial(lift_band, root, entry, tables, {"op0": {"buf0"}, "op1": {"buf1"}})
        if not refused:
            assert [node.name for node in lift().nodes] == ["op0", "op1"]
            return
        with pytest.raises(Unsupported, match="op0: buf0 is stored at several places") as raised:
            lift()
        assert raised.value.reason is Reason.not_liftable
