"""Test what a loop that carries values becomes: one reduction of Inductor's, after the pieces that a split made."""

from __future__ import annotations

import pytest
import sympy
from ssa_values import evaluating, operations

from bridge.lowering.lift.reductions import lift_reduction
from bridge.reasons import Reason, Unsupported


def reduction(body, carried=1, element="f32", zero="0.0 : f32"):
    """Return a loop over pairs of elements, %a and %b, that carries %s0, %s1 and so on."""
    initial = ", ".join(f"%s{k} = %zero" for k in range(carried))
    types = ", ".join([element] * carried)
    return f"""func.func @f(%x: memref<8x{element}>) {{
      %zero = arith.constant {zero}
      %r:{carried} = affine.for %i = 0 to 4 iter_args({initial}) -> ({types}) {{
        %a = affine.load %x[%i * 2] : memref<8x{element}>
        %b = affine.load %x[%i * 2 + 1] : memref<8x{element}>
        {body}
      }} return }}"""


def lifted(text, position=0, **settings):
    with evaluating(text, **settings) as (evaluator, module):
        (loop,) = operations(module, "affine.for")
        return lift_reduction(evaluator, loop, loop.results[position])


SUM_OF_PAIRS = "%p = arith.addf %s0, %a : f32 %q = arith.addf %p, %b : f32 affine.yield %q : f32"


def test_pieces_are_combined_in_order_before_the_reduction():
    pieces = "add(load(b0, 2*i0), load(b0, 2*i0 + 1))"
    assert lifted(reduction(SUM_OF_PAIRS)) == f"reduction(torch.float32, torch.float32, sum, {pieces})"


def test_a_segment_is_reduced_alone():
    assert "bridge_segmented:sum:4, add(" in lifted(reduction(SUM_OF_PAIRS), segment=4)


AS_MANY = [{"row": 4}, {"segment": 4}, {"row": 8, "segment": 4}, {"row": 8, "once": 0}]


@pytest.mark.parametrize("lanes", AS_MANY, ids=str)
def test_lanes_reduce_as_many_elements_as_the_loop_has_iterations(lanes):
    assert "sum" in lifted(reduction(SUM_OF_PAIRS), **lanes)


OTHERS = [{"row": 8}, {"segment": 2}, {"row": 4, "segment": 8}, {"row": 6, "once": 0}]


@pytest.mark.parametrize("lanes", OTHERS, ids=str)
def test_more_or_fewer_lanes_than_iterations_reduce_something_else(lanes):
    with pytest.raises(Unsupported, match="a reduction of 4 elements over") as refused:
        lifted(reduction(SUM_OF_PAIRS), **lanes)
    assert refused.value.reason is Reason.not_liftable
    assert "sum" in lifted(reduction(SUM_OF_PAIRS), simt_target=False, **lanes)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("%p = arith.mulf %s0, %a : f32 %q = arith.addf %p, %b : f32 affine.yield %q : f32", "more than one kind"),
        ("%p = arith.subf %s0, %a : f32 affine.yield %p : f32", "reduction by arith.subf of torch.float32"),
    ],
    ids=["mixed", "no reduction"],
)
def test_other_loops_are_refused(body, words):
    with pytest.raises(Unsupported, match=words) as raised:
        lifted(reduction(body))
    assert raised.value.reason is Reason.not_liftable


def test_the_sum_of_exponentials_in_registers_is_taken_in_two_passes():
    body = """%one = arith.constant 1.0 : f32
      %t:2 = bridge.combine online_softmax (%s0, %s1), (%a, %one) : f32, f32
      affine.yield %t#0, %t#1 : f32, f32"""
    maximum = "reduction(torch.float32, torch.float32, max, load(b0, 2*i0))"
    assert lifted(reduction(body, 2), 0, in_registers=True) == maximum
    total = lifted(reduction(body, 2), 1, in_registers=True)
    assert total == f"reduction(torch.float32, torch.float32, sum, exp(sub(load(b0, 2*i0), {maximum})))"


def test_moments_over_segments_are_refused():
    body = """%none = arith.constant 0.0 : f32 %one = arith.constant 1.0 : f32
      %t:3 = bridge.combine welford (%s0, %s1, %s2), (%a, %none, %one) : f32, f32, f32
      affine.yield %t#0, %t#1, %t#2 : f32, f32, f32"""
    assert lifted(reduction(body, 3)) == "reduction(torch.float32, torch.float32, welford_reduce, load(b0, 2*i0))"
    with pytest.raises(Unsupported, match="a merge of moments over segments"):
        lifted(reduction(body, 3), segment=4)
    with pytest.raises(Unsupported, match="a merge of moments over segments"):
        lifted(reduction(body, 3), once=sympy.Symbol("place"))
