"""Test what a band iteration keeps: the registers of every element that its reductions load."""

from __future__ import annotations

import pytest

from bridge.affine.mlir_runtime import context, ir
from bridge.lowering.lift.footprint import (
    goes_once,
    keeps_elements,
    lane_combinations,
    loop_around,
    row_registers,
    spread_loops,
)


def registers(*loops, element="f32", size="?"):
    """Return the registers of loops, each (extent, subscript of what it loads)."""
    nests = [
        f"""%r{k} = affine.for %i = 0 to {extent} iter_args(%s = %zero) -> ({element}) {{
          %v = affine.load %x[{subscript}] : memref<{size}x{element}>
          %t = arith.addf %s, %v : {element}
          affine.yield %t : {element} }}"""
        for k, (extent, subscript) in enumerate(loops)
    ]
    text = f"""func.func @f(%x: memref<{size}x{element}>, %n: index) {{
      %zero = arith.constant 0.0 : {element} {" ".join(nests)} return }}"""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        entry = module.body.operations[0].operation.regions[0].blocks[0]
        return row_registers([op.operation for op in entry.operations if op.operation.name == "affine.for"])


@pytest.mark.parametrize(("element", "expected"), [("f32", 64), ("f64", 128), ("bf16", 32)])
def test_an_extent_is_rounded_up_to_a_power_of_two(element, expected):
    assert registers((48, "%i"), element=element) == expected


@pytest.mark.parametrize(("extent", "expected"), [(32768, 16384), (32769, 65536)])
def test_a_row_of_16_bits_is_computed_in_32(extent, expected):
    """Check that a row of 16 bits counts as computed in 32.

    Groups of 63504 bf16 numbers were kept, as 32768 registers: 7.4 ms on an H100, where their loop takes 0.7.
    """
    assert registers((extent, "%i"), element="bf16") == expected


def test_an_element_that_two_loops_load_counts_once():
    assert registers((64, "%i"), (64, "%i")) == 64
    assert registers((64, "%i"), (64, "%i + 64")) == 128


def test_what_all_iterations_load_is_not_kept():
    assert registers((64, "0")) == 0


def test_a_symbolic_row_has_no_number():
    assert registers((64, "%i"), ("%n", "%i")) is None


def test_a_symbolic_number_of_segments_has_no_number():
    """Check that a symbolic number of segments has no number of registers.

    The sum of a divergence over symbolic rows was an internal error with torch 2.15.
    """
    text = """func.func @f(%x: memref<?x64xf32>, %n: index, %z: f32) {
      affine.for %b = 0 to 1 {
        affine.for %i = 0 to %n {
          %r = affine.for %j = 0 to 64 iter_args(%s = %z) -> (f32) {
            %v = affine.load %x[%i, %j] : memref<?x64xf32>
            %t = arith.addf %s, %v : f32
            affine.yield %t : f32 }
        }
      } {bridge.band}
      return }"""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        band = module.body.operations[0].regions[0].blocks[0].operations[0]
        lanes = band.regions[0].blocks[0].operations[0]
        reduction = lanes.regions[0].blocks[0].operations[0]
        assert row_registers([reduction.operation]) is None


def test_without_a_reduction_nothing_is_kept():
    assert row_registers([]) == 0


GATHERS = """func.func @f(%x: memref<512x64xf32>, %a: memref<8x64xi64>, %b: memref<8x64xi64>, %out: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0 : index
  %rows = arith.constant 512 : index
  affine.for %r = 0 to 8 {
    %s = affine.for %i = 0 to 64 iter_args(%t = %zero) -> (f32) {
      BODY
      affine.yield %t : f32
    }
    affine.store %s, %out[%r] : memref<8xf32>
  } {bridge.band}
  return }"""


def gather(name, ids):
    """Return a load from the table where `ids`, an index of a row and a lane, says."""
    flags = "{checks = array<i1: true>, wraps = array<i1: true>} : memref<512x64xf32>, i64"
    return f"""%v{name} = affine.load {ids} : memref<8x64xi64>
      %g{name} = bridge.gather %x[%none] at (%v{name}) of (%rows) by (%rows) {flags}"""


@pytest.mark.parametrize(
    "ids, expected",
    [
        (["%a[%r, %i]"], 64 + 128),
        (["%a[%r, %i]", "%a[%r, %i]"], 64 + 128),
        (["%a[%r, %i]", "%b[%r, %i]"], 2 * 64 + 2 * 128),
        (["%a[%r, 0]"], 0),
    ],
)
def test_what_is_gathered_counts_by_its_place(ids, expected):
    """Check that gathered elements count by their place, beside the positions, which are 64 bits each."""
    text = GATHERS.replace("BODY", "\n".join(gather(name, place) for name, place in enumerate(ids)))
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        entry = module.body.operations[0].operation.regions[0].blocks[0]
        (band,) = (op for op in entry.operations if op.operation.name == "affine.for")
        (loop, *_) = band.operation.regions[0].blocks[0].operations
        assert row_registers([loop.operation]) == expected


def test_what_all_iterations_of_a_band_load_is_not_their_own():
    """Check that a weight, which every row loads, counts among the registers of a row, and not among its own."""
    loads = """%v = affine.load %x[%r, %i] : memref<512x64xf32>
      %w = affine.load %x[0, %i] : memref<512x64xf32>"""
    with context(), ir.Location.unknown():
        proven = GATHERS.replace("{bridge.band}", "{bridge.band, bridge.parallel}")
        module = ir.Module.parse(proven.replace("BODY", loads))
        entry = module.body.operations[0].operation.regions[0].blocks[0]
        (band,) = (op for op in entry.operations if op.operation.name == "affine.for")
        (loop, *_) = band.operation.regions[0].blocks[0].operations
        assert row_registers([loop.operation]) == 2 * 64
        assert row_registers([loop.operation], shared=False) == 64


STATES = """func.func @f(%x: memref<8x64xf32>, %out: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %first = arith.constant 0 : i64
  affine.for %r = 0 to 8 {
    %v = affine.load %x[%r, 0] : memref<8x64xf32>
    %o:2 = bridge.combine argmax (%zero, %first), (%v, %first) : f32, i64
    affine.for %i = 0 to 32 {
      %a = affine.load %x[%r, %i] : memref<8x64xf32>
      %b = affine.load %x[%r, %i + 32] : memref<8x64xf32>
      %c:2 = bridge.combine KIND (%zero, %first), (%a, %first) : f32, i64
      %d:2 = bridge.combine KIND (%c#0, %c#1), (%b, %first) : f32, i64
    }
    %s:2 = affine.for %i = 0 to 64 iter_args(%t = %zero, %u = %first) -> (f32, i64) {
      %a = affine.load %x[%r, %i] : memref<8x64xf32>
      %c:2 = bridge.combine argmax (%t, %u), (%a, %first) : f32, i64
      affine.yield %c#0, %c#1 : f32, i64
    }
    affine.store %s#0, %out[%r] : memref<8xf32>
  } {bridge.band}
  return }"""


@pytest.mark.parametrize(("kind", "keeps"), [("argmax", False), ("online_softmax", True)])
def test_lanes_that_combine_by_themselves_are_found(kind, keeps):
    """Check that lanes that combine by themselves are found: not once a band iteration, nor as the row's state."""
    text = STATES.replace("KIND", kind)
    if kind == "online_softmax":
        text = text.replace("(%zero, %first), (%a, %first) : f32, i64", "(%zero, %zero), (%a, %one) : f32, f32", 1)
        text = text.replace("(%c#0, %c#1), (%b, %first) : f32, i64", "(%c#0, %c#1), (%b, %one) : f32, f32")
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        entry = module.body.operations[0].operation.regions[0].blocks[0]
        (band,) = (op.operation for op in entry.operations if op.operation.name == "affine.for")
        (combination,) = lane_combinations(band)
        assert keeps_elements(combination) is keeps
        assert row_registers([loop_around(combination)]) == 64


def test_lanes_that_store_several_elements_are_found():
    text = """func.func @f(%x: memref<8x64xf32>, %y: memref<8x64xf32>, %z: memref<8x32xf32>) {
      affine.for %r = 0 to 8 {
        affine.for %i = 0 to 32 {
          %a = affine.load %x[%r, %i] : memref<8x64xf32>
          affine.store %a, %y[%r, %i] : memref<8x64xf32>
          affine.store %a, %y[%r, %i + 32] : memref<8x64xf32>
        }
        affine.for %i = 0 to 32 {
          %a = affine.load %x[%r, %i] : memref<8x64xf32>
          affine.store %a, %z[%r, %i] : memref<8x32xf32>
        }
      } {bridge.band}
      return }"""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        entry = module.body.operations[0].operation.regions[0].blocks[0]
        (band,) = (op.operation for op in entry.operations if op.operation.name == "affine.for")
        lanes = [op.operation for op in band.regions[0].blocks[0].operations if op.operation.name == "affine.for"]
        assert spread_loops(band) == lanes[:1]


ONCE = """func.func @f(%x: memref<8x64xf32>, %y: memref<8x64xf32>, %out: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %r = 0 to 8 {
    %s = affine.for %i = 0 to 64 iter_args(%t = %zero) -> (f32) {
      %a = affine.load %x[%r, %i] : memref<8x64xf32>
      %b = arith.addf %t, %a : f32
      affine.yield %b : f32
    }
    affine.store %s, %out[%r] : memref<8xf32>
    LATER
    affine.for %i = 0 to 64 {
      %a = affine.load %x[%r, %i] : memref<8x64xf32>
      %b = arith.addf %a, OTHER : f32
      affine.store %b, %y[%r, %i] : memref<8x64xf32>
    }
  } {bridge.band, bridge.parallel}
  return }"""

SECOND = """%o = affine.for %i = 0 to 64 iter_args(%t = %zero) -> (f32) {
      %a = affine.load %x[%r, %i] : memref<8x64xf32>
      %b = arith.subf %a, OTHER : f32
      %c = arith.addf %t, %b : f32
      affine.yield %c : f32
    }
    affine.store %o, %out[%r] : memref<8xf32>"""


@pytest.mark.parametrize(
    ("later", "other", "once"),
    [
        ("", "%a", True),
        ("", "%s", False),
        ("%o = affine.load %out[%r] : memref<8xf32>", "%o", False),
        (SECOND.replace("OTHER", "%s"), "%a", False),
        (SECOND.replace("OTHER", "%a"), "%a", True),
    ],
)
def test_a_row_is_read_once_where_no_lane_and_no_reduction_waits_for_another(later, other, once):
    """Check that a row is read once where no lane and no reduction waits for another, by a value or by memory."""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(ONCE.replace("LATER", later).replace("OTHER", other))
        entry = module.body.operations[0].operation.regions[0].blocks[0]
        (band,) = (op.operation for op in entry.operations if op.operation.name == "affine.for")
        assert goes_once(band) is once


def test_a_lane_waits_for_a_reduction_that_code_motion_took_out_of_the_band():
    """Check that a lane waits for a reduction that code motion took out of the band, which has one iteration.

    A long row was a loop that used its sum before it had ended.
    """
    text = """func.func @f(%x: memref<64xf32>, %y: memref<64xf32>) {
      %zero = arith.constant 0.0 : f32
      %s = affine.for %i = 0 to 64 iter_args(%t = %zero) -> (f32) {
        %a = affine.load %x[%i] : memref<64xf32>
        %b = arith.addf %t, %a : f32
        affine.yield %b : f32
      }
      affine.for %r = 0 to 1 {
        affine.for %i = 0 to 64 {
          %a = affine.load %x[%i] : memref<64xf32>
          %b = arith.addf %a, %s : f32
          affine.store %b, %y[%i] : memref<64xf32>
        }
      } {bridge.band, bridge.parallel}
      return }"""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        entry = module.body.operations[0].operation.regions[0].blocks[0]
        _, band = (op.operation for op in entry.operations if op.operation.name == "affine.for")
        assert not goes_once(band)
