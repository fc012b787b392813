"""Test loops around a store: which are the band's and which are lanes of a row, and the digits of a lane's number."""

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
    in_loops_of,
    known_extents,
    lane_number,
    repeated_lanes,
    segment_length,
    stored_by_one_lane,
)
from bridge.reasons import InvariantError, Reason, Unsupported

PROVEN = "{bridge.band, bridge.parallel}"


@contextlib.contextmanager
def nests(band=PROVEN, extents=(4,)):
    """Yield (stores, loops): for each extent, a loop of so many lanes with a store, in one loop of the band."""
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


def test_loops_of_as_many_iterations_are_the_same_lanes():
    with nests(extents=(4, 4, 8, "%n")) as (_, (sixteen, four, same, eight, symbolic)):
        assert alike([[four], [eight], [sixteen, same], [symbolic]], [same]) == [[four]]
        assert alike([[eight, four], [four, eight], [four, same], [eight, symbolic]], [four, eight]) == [
            [eight, four],
            [four, eight],
        ]
        assert alike([[symbolic]], [symbolic]) == [], "nobody says that two symbols are alike"


def test_a_lane_has_one_number_in_all_loops_that_are_alike():
    """Check that a lane has one number in all loops that are alike.

    A group norm reduces channels and pixels; what reads its result goes over channels, rows and columns.
    """
    one, other = (sympy.Symbol(name, integer=True, nonnegative=True) for name in "ab")
    with nests(extents=(4, 8, 16, 2)) as (_, (_, four, eight, sixteen, two)):
        assert in_loops_of([four, eight], [four, eight], [one, other]) == [one, other]
        cut = in_loops_of([sixteen, two], [four, eight], [one, other])
    numbers = {(a, b): [int(index.subs({one: a, other: b})) for index in cut] for a in range(4) for b in range(8)}
    assert all(2 * high + low == 8 * a + b and low < 2 for (a, b), (high, low) in numbers.items())
    assert lane_number([one, other], [4, 8]) == 8 * one + other


def test_what_a_band_iteration_has_reduced_is_stored_by_one_lane():
    """Check that a reduced value is stored by one lane, without the reduction's loops.

    Inductor takes no node for a reduction that was none: it asserted that the loops were the node's own.
    """
    with nests(extents=(4,)) as (_, (band, lanes)):
        waiting = stored_by_one_lane(StoreNest([band], [], [lanes]))
        assert (waiting.lanes, waiting.reduction, waiting.once, waiting.count) == ([lanes], [], True, 4)
        for nest in (StoreNest([band], [lanes], []), StoreNest([band], [], []), StoreNest([band], [lanes], [lanes])):
            assert stored_by_one_lane(nest) == nest


def stored_scale(elementwise, keeps_row=True):
    """Lift a sum of each row, its half and its third, which a node without loops over the row stores."""
    text = """func.func @f(%x: memref<16x8xf32>, %s: memref<16xf32>, %y: memref<16x2xf32>) {
      %zero = arith.constant 0.0 : f32
      affine.for %i = 0 to 16 {
        %sum = affine.for %j = 0 to 8 iter_args(%a = %zero) -> (f32) {
          %v = affine.load %x[%i, %j] : memref<16x8xf32>
          %b = arith.addf %a, %v : f32
          affine.yield %b : f32 }
        affine.store %sum, %s[%i] : memref<16xf32>
        affine.store %sum, %y[%i, 1] : memref<16x2xf32>
      } {bridge.band, bridge.parallel, bridge.kernels = [0, 1], bridge.nodes = ["op0", "op1"]}
      return }"""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        entry = module.body.operations[0].regions[0].blocks[0]
        buffers = [("buf0", [8, 1]), ("buf1", [1]), ("buf2", [2, 1])]
        tables = FunctionTables(buffers, [], keeps_row=lambda _: keeps_row, elementwise=frozenset(elementwise))
        root = next(op.operation for op in entry.operations if op.operation.name == "affine.for")
        return lift_band(root, entry, tables, {"op0": {"buf1"}, "op1": {"buf2"}}).nodes


def test_a_node_that_reduces_nothing_has_no_loop_that_reduces():
    assert [(n.iter_sizes, n.reduce_sizes) for n in stored_scale({"op1"})] == [([16], [8]), ([16, 8], [])]
    assert [(n.iter_sizes, n.reduce_sizes) for n in stored_scale(())] == [([16], [8]), ([16], [8])]
    with pytest.raises(Unsupported, match="op1: it stores what no whole row in registers has reduced"):
        stored_scale({"op1"}, keeps_row=False)


def test_digits_of_every_number():
    lane = sympy.Symbol("lane", integer=True, nonnegative=True)
    found = digits(lane, [3, 4, 5])
    numbers = [tuple(int(digit.subs(lane, n)) for digit in found) for n in range(60)]
    assert numbers == [(a, b, c) for a in range(3) for b in range(4) for c in range(5)]


def two_places(lanes):
    """Return a loop that stores two elements of a row an iteration, and one of `lanes` iterations that loads it."""
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
    """Check that a buffer is not read beside stores at several places; C++ loops of other extents are other loops.

    Inductor would take the element that was stored last for any.
    """
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
