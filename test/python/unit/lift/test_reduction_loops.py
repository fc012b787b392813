"""Test which loops of reductions a store is of."""

from __future__ import annotations

import contextlib

import pytest
import torch
from emitted import NO_STAGES, run_emitted
from ssa_values import operations

from bridge.affine.mlir_runtime import context, ir
from bridge.backend import bridge
from bridge.lowering.lift.reduction_loops import (
    outermost_reductions,
    reduced_beside_lanes,
    reduces,
    reduction_loops,
    value_before_rounding,
    waits_for_reduction,
)

SUM = """%{name} = affine.for %k{name} = 0 to 16 iter_args(%a{name} = %v) -> (f32) {{
  %l{name} = affine.load %y[%k{name}] : memref<16xf32>
  %b{name} = arith.addf %a{name}, %l{name} : f32
  affine.yield %b{name} : f32 }}
"""


@contextlib.contextmanager
def stores(*lines):
    """Yield the stores of values in a band iteration, and the loops of its sums `%s` and `%t`; some in four lanes."""
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


def test_a_store_waits_for_what_is_computed_with_before_it():
    with stores("%s", "%u", "%v", "lanes %s") as (found, sums):
        assert [waits_for_reduction(store) for store in found] == [False, True, False, False]
        assert outermost_reductions([found[1].operands[0]]) == set(sums)


def test_a_sum_rounded_by_its_store_waits_for_nothing():
    """Find that a rounding that is meant is computed with: gradients of half-precision scales were refused."""
    text = """func.func @f(%x: memref<16xf32>, %y: memref<2xbf16>, %v: f32) { affine.for %i = 0 to 1 {
      %s = affine.for %j = 0 to 16 iter_args(%a = %v) -> (f32) {
        %l = affine.load %x[%j] : memref<16xf32>
        %n = arith.addf %a, %l : f32
        affine.yield %n : f32 }
      %r = arith.truncf %s : f32 to bf16
      affine.store %r, %y[0] : memref<2xbf16>
      %m = arith.truncf %s to_nearest_even : f32 to bf16
      affine.store %m, %y[1] : memref<2xbf16>
    } {bridge.band, bridge.parallel} return }"""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        own, meant = operations(module, "affine.store")
        assert not waits_for_reduction(own) and waits_for_reduction(meant)
        assert value_before_rounding(own) == own.operands[0].owner.operands[0]
        assert value_before_rounding(meant) == meant.operands[0]


def test_a_reduction_waits_for_the_one_whose_result_is_in_its_elements():
    """Check that a reduction waits for one whose result is in its elements, and not for its own inner loops."""
    text = """func.func @f(%x: memref<4x16xf32>, %y: memref<2xf32>, %v: f32) { affine.for %i = 0 to 1 {
      %s = affine.for %j = 0 to 4 iter_args(%a = %v) -> (f32) {
        %t = affine.for %k = 0 to 16 iter_args(%b = %a) -> (f32) {
          %l = affine.load %x[%j, %k] : memref<4x16xf32>
          %n = arith.addf %b, %l : f32
          affine.yield %n : f32 }
        affine.yield %t : f32 }
      %u = affine.for %k = 0 to 16 iter_args(%b = %v) -> (f32) {
        %m = arith.mulf %b, %s : f32
        affine.yield %m : f32 }
      affine.store %s, %y[0] : memref<2xf32>
      affine.store %u, %y[1] : memref<2xf32>
    } {bridge.band, bridge.parallel} return }"""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        first, inner, second = (loop for loop in operations(module, "affine.for") if list(loop.results))
        store, late = operations(module, "affine.store")
        assert not waits_for_reduction(store) and waits_for_reduction(late)
        assert outermost_reductions([late.operands[0]]) == {first, second} != {inner}


def gradients_of_largest(largest, scale, x, w, g):
    """Compute what a quantiser's backward does: the gradient of a maximum is shared by the elements that have it."""
    y = x.to(scale.dtype) * scale * w
    is_largest = largest == y.abs()
    z = g / is_largest.sum(-1, keepdim=True) * is_largest * torch.sign(y)
    gradient = x * (z * w * x).sum(-1, keepdim=True) + z * w
    return gradient.to(x.dtype), (z * (x * scale)).sum(0).to(x.dtype)


@pytest.mark.parametrize("columns", [1030, 20000])
def test_three_rows_side_by_side_use_no_sum_before_its_loop_has_ended(columns):
    """Check that three rows side by side use no sum before its loop has ended: the sums are outside of the band.

    Triton said: local variable 'tmp54' is not associated with a value.
    """
    torch.manual_seed(0)
    x, w = (torch.randint(-9, 9, size).bfloat16() for size in ((3, columns), (columns,)))
    scale, g = torch.tensor([[0.5], [1.0], [2.0]]), torch.randn(3, 1)
    inputs = [(x * scale * w).abs().amax(-1, keepdim=True), scale, x, w, g]
    options = {"force_fusion": True, "strict": True}
    outputs, _ = run_emitted(
        gradients_of_largest,
        inputs,
        lambda gm, inputs: bridge(gm, inputs, options=options),
        split_reductions=False,
        **NO_STAGES,
    )
    for got, want in zip(outputs, gradients_of_largest(*(t.double() for t in inputs)), strict=True):
        torch.testing.assert_close(got.double(), want, rtol=2e-2, atol=2e-2)
