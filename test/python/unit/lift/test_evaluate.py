"""Test what SSA values become in Inductor's `ops`.

Loads, constants, guards, roundings, and reductions over segments.
"""

from __future__ import annotations

import re

import pytest
import sympy
import torch
import torch.nn.functional as F
from emitted import run_emitted
from ssa_values import Terms, evaluating, operations

import bridge
from bridge.backend import bridge as bridge_backend
from bridge.lowering.lift.environment import Environment
from bridge.lowering.lift.evaluate import Evaluator, number
from bridge.reasons import Reason, Unsupported


def pointwise(body, result="f32"):
    """Return a function that stores %r, for each of 8 elements, to %out."""
    return f"""func.func @f(%x: memref<8xf32>, %out: memref<8x{result}>) {{
      affine.for %i = 0 to 8 {{ {body} affine.store %r, %out[%i] : memref<8x{result}> }} return }}"""


def stored(text, **settings):
    with evaluating(text, **settings) as (evaluator, module):
        return evaluator.stored(operations(module, "affine.store")[0])


LOAD = "%v = affine.load %x[%i] : memref<8xf32>"


def test_location_is_linear():
    text = """func.func @f(%x: memref<4x8xf32>) { affine.for %i = 0 to 4 { affine.for %j = 0 to 7 {
      %v = affine.load %x[%i, %j + 1] : memref<4x8xf32> } } return }"""
    with evaluating(text) as (evaluator, module):
        name, offset = evaluator.location(operations(module, "affine.load")[0], 0)
    assert (name, str(offset)) == ("b0", "8*i0 + i1 + 1")


@pytest.mark.parametrize(
    ("constant", "expected"),
    [("0.1 : f32", 0.1), ("0.1 : f64", 0.1), ("-5 : i32", -5), ("true", True), ("16777217.0 : f64", 16777217.0)],
)
def test_number_is_as_it_was_written(constant, expected):
    with evaluating(f"func.func @f() {{ %c = arith.constant {constant} return }}") as (_, module):
        found = number(operations(module, "arith.constant")[0])
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("", "load(b0, i0)"),
        (
            "to_nearest_even",
            "to_dtype(to_dtype(load(b0, i0), torch.bfloat16, torch.float32, False), torch.float32, torch.bfloat16)",
        ),
    ],
    ids=["the store's own", "meant"],
)
def test_a_rounding_is_left_to_the_store_unless_it_is_meant(mode, expected):
    assert stored(pointwise(f"{LOAD} %r = arith.truncf %v {mode} : f32 to bf16", "bf16")) == expected


def test_a_guard_is_a_masked_block():
    guard = f"""%r = affine.if affine_set<(d0) : (d0 - 3 >= 0)>(%i) -> f32 {{ {LOAD} affine.yield %v : f32 }}
      else {{ %c = arith.constant 0.5 : f32 affine.yield %c : f32 }}"""
    assert stored(pointwise(guard)) == f"masked({MASK}, load(b0, i0), 0.5)"
    assert stored(pointwise(guard), simt_target=False) == f"masked({MASK_OF_CPP}, load(b0, i0), 0.5)"


def under_guard(body):
    return f"""%around = affine.load %x[%i] : memref<8xf32>
      %r = affine.if affine_set<(d0) : (d0 - 3 >= 0)>(%i) -> f32 {{ {body} affine.yield %w : f32 }}
      else {{ %c = arith.constant 0.5 : f32 affine.yield %c : f32 }}"""


NEXT = "%next = affine.load %x[%i - 1] : memref<8xf32> %w = arith.mulf %next, %around : f32"
MASK = "ge(index_expr(i0, torch.int32), constant(3, torch.int32))"
MASK_OF_CPP = MASK.replace("int32", "int64")


def test_under_a_guard_only_loads_that_may_be_outside_are_masked():
    """Check that under a guard only loads that may be out of bounds are masked.

    Triton does not see that neighbours share what is loaded under a mask: each lane took the root of a variance.
    """
    product = f"mul(masked({MASK}, load(b0, i0 - 1), 0), load(b0, i0))"
    assert stored(pointwise(under_guard(NEXT))) == f"where({MASK}, {product}, constant(0.5, torch.float32))"


def test_cpp_skips_what_is_under_a_guard():
    found = stored(pointwise(under_guard(NEXT)), simt_target=False)
    assert found == f"masked({MASK_OF_CPP}, mul(load(b0, i0 - 1), load(b0, i0)), 0.5)"


def test_a_guard_in_a_guard_masks_loads_by_both():
    inner = under_guard(NEXT.replace("%w", "%u")).replace("%around = affine.load %x[%i] : memref<8xf32>", "")
    inner = inner.replace("%w", "%u").replace("%r", "%w").replace("d0 - 3", "d0 - 5")
    both = f"and_({MASK}, {MASK.replace('(3', '(5')})"
    assert f"masked({both}, load(b0, i0 - 1), 0)" in stored(pointwise(under_guard(inner)))


def test_a_guard_in_a_block_under_the_same_guard_masks_nothing():
    """Check that a mask is not joined with itself: Triton does not see that it is the same, and loads twice."""
    condition, other = "affine_set<(d0) : (d0 - 3 >= 0)>(%i)", "affine.yield %c : f32"
    guards = f"""%c = arith.constant 0.5 : f32
      %u = affine.if {condition} -> f32 {{ {LOAD} affine.yield %v : f32 }} else {{ {other} }}
      %r = affine.if {condition} -> f32 {{ %w = arith.mulf %u, %u : f32 affine.yield %w : f32 }} else {{ {other} }}"""
    found = stored(pointwise(guards), simt_target=False)
    assert found == f"masked({MASK_OF_CPP}, mul(load(b0, i0), load(b0, i0)), 0.5)"


@pytest.mark.parametrize(
    ("operation", "simt", "dtype"),
    [
        ("floordivsi", True, "i8"),
        ("floordivsi", True, "i16"),
        ("divui", True, "i8"),
        ("floordivsi", True, "i32"),
        ("floordivsi", False, "i8"),
    ],
)
def test_a_quotient_has_no_more_bits_than_its_type(operation, simt, dtype):
    """Check that a quotient has no more bits than its type.

    In registers a product of two int8 quotients was not cut off: Triton had 32 bits of it.
    """
    text = f"""func.func @f(%x: memref<8x{dtype}>, %out: memref<8x{dtype}>) {{
      affine.for %i = 0 to 8 {{ %v = affine.load %x[%i] : memref<8x{dtype}>
      %r = arith.{operation} %v, %v : {dtype} affine.store %r, %out[%i] : memref<8x{dtype}> }} return }}"""
    narrow = simt and dtype != "i32"
    assert str(stored(text, simt_target=simt)).startswith("to_dtype(" if narrow else "floordiv(")


def test_an_operation_that_ops_lacks_is_named():
    with pytest.raises(Unsupported, match=r"math\.cbrt") as raised:
        stored(pointwise(f"{LOAD} %r = math.cbrt %v : f32"))
    assert raised.value.reason is Reason.not_liftable


def test_segments_are_of_powers_of_two():
    evaluator = Evaluator(Environment(Terms(), {}, {}, segment=4))
    reduced = evaluator.reduce(torch.float32, "sum", "v")
    assert reduced == "reduction(torch.float32, torch.float32, bridge_segmented:sum:4, v)"
    with pytest.raises(Unsupported, match="sum over segments of 3 lanes"):
        Evaluator(Environment(Terms(), {}, {}, segment=3)).reduce(torch.float32, "sum", "v")


def test_lanes_that_share_an_element_add_it_once():
    evaluator = Evaluator(Environment(Terms(), {}, {}, segment=4, once=sympy.Symbol("place")))
    mask = "eq(index_expr(place, torch.int64), constant(0, torch.int64))"
    for kind, neutral in (("sum", 0), ("prod", 1)):
        value = f"where({mask}, v, constant({neutral}, torch.float32))"
        expected = f"reduction(torch.float32, torch.float32, bridge_segmented:{kind}:4, {value})"
        assert evaluator.reduce(torch.float32, kind, "v") == expected
    assert evaluator.reduce(torch.float32, "max", "v").endswith("bridge_segmented:max:4, v)")
    with pytest.raises(Unsupported, match="dot over lanes that have the same elements"):
        evaluator.reduce(torch.float32, "dot", "v")


DRAW = """func.func @f(%seeds: memref<4xi64>, %out: memref<8xf32>) {{ affine.for %i = 0 to 8 {{
  %seed = affine.load %seeds[2] : memref<4xi64>
  {offset}
  %r = bridge.special rand %seed, %offset : (i64, i32) -> f32
  affine.store %r, %out[%i] : memref<8xf32> }} return }}"""


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        ("%offset = arith.index_cast %i : index to i32", "index_expr(i0, torch.int32)"),
        ("%offset = arith.constant 5 : i32", "index_expr(5, torch.int32)"),
        (
            "%p = arith.muli %i, %i : index %offset = arith.index_cast %p : index to i32",
            "index_expr(i0**2, torch.int32)",
        ),
    ],
    ids=["index", "constant", "products"],
)
def test_a_random_number_is_of_an_index_and_of_a_place_in_the_seeds(offset, expected):
    text = DRAW.format(offset=offset)
    assert stored(text, seeds=frozenset({"b0"})) == f"rand(load_seed(b0, 2), {expected})"
    assert stored(text).startswith("rand(load(b0, 2), ")


def normed_integers(numbers):
    """Normalise integers that are stored as bfloat16."""
    rows = ((numbers // 3) ^ 5).to(torch.bfloat16)
    return F.pad(F.normalize(rows, dim=1), (0, 2), value=1.0), rows


@pytest.mark.parametrize("emulates", [False, True])
def test_integers_that_are_stored_in_16_bits_are_float32_in_the_kernel(emulates):
    """Check that what else reads them has no bfloat16 to compute with: squares were rounded before they were added."""
    numbers = torch.randint(-300, 300, (45, 9), dtype=torch.int32, generator=torch.Generator().manual_seed(0))
    ours, codes = run_emitted(normed_integers, [numbers], bridge_backend, emulate_precision_casts=emulates)
    assert bridge.report().fused
    assert not re.search(r"tmp\d+ = tmp\d+\.to\(tl\.bfloat16\)\n", codes[-1]) or emulates
    for got, want in zip(ours, normed_integers(numbers), strict=True):
        torch.testing.assert_close(got.double(), want.double(), rtol=8e-3, atol=1e-6)
