"""Test what the trace of a loop body keeps, and which bodies it refuses."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import sympy
import torch
from emitted import run_emitted
from torch._inductor.virtualized import V
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

import bridge
from bridge.affine.translate.trace import Component, NestTrace, guarded_ranges, iteration_variable, trace_node
from bridge.backend import bridge as bridge_backend
from bridge.reasons import Reason, Unsupported

i, j = (iteration_variable(n) for n in range(2))
ROWS, COLUMNS = sympy.Integer(16), sympy.Integer(48)


def trace(compute, iteration=(ROWS,), reduction=(), factors=None):
    """Return the trace of a body that stores what `compute(ops, indices)` gives."""

    def body(*indices):
        ops = V.get_ops_handler()
        ops.store("out", indices[0][0], compute(ops, indices))

    return trace_node("op0", body, (list(iteration), list(reduction)), factors)


def below(ops, index, limit):
    return ops.lt(ops.index_expr(index, torch.int64), ops.constant(limit, torch.int64))


def test_steps_are_kept_in_order_with_their_accesses():
    found = trace(lambda ops, at: ops.exp(ops.load("in", 2 * at[0][0])))
    assert [step.op for step in found.steps] == ["load", "exp", "store"]
    assert [(a.buffer, a.index, a.is_write) for a in found.accesses] == [("in", 2 * i, False), ("out", i, True)]
    assert found.iter_vars == [(i, ROWS)]


def test_a_loop_may_be_replaced_by_several():
    found = trace(lambda ops, at: ops.load("in", at[0][0]), factors=[[sympy.Integer(4), sympy.Integer(4)]])
    assert found.iter_vars == [(i, 4), (j, 4)]
    assert found.accesses[0].index == 4 * i + j


def test_a_seed_is_loaded_from_a_place_of_its_buffer():
    def compute(ops, at):
        return ops.rand(ops.load_seed("seeds", 2), ops.index_expr(at[0][0], torch.int32))

    found = trace(compute)
    assert [step.op for step in found.steps] == ["load", "index_expr", "rand", "store"]
    assert [(a.buffer, a.index, a.is_write) for a in found.accesses] == [("seeds", 2, False), ("out", i, True)]
    assert found.seeds == {"seeds"}


def test_a_masked_block_narrows_the_ranges_in_it_only():
    def compute(ops, at):
        row = at[0][0]
        ops.masked(below(ops, row, 3), lambda: ops.load("in", row), 0.0)
        return ops.load("in", row)

    found = trace(compute)
    guarded, unguarded, _ = found.accesses
    masked = next(step for step in found.steps if step.op == "masked")
    assert [step.op for step in masked.region] == ["load"]
    assert guarded.ranges[i] == (0, 2)
    assert unguarded.ranges[i] == (0, 15)


def test_a_part_that_its_guard_selects_was_in_rows_of_the_part_and_the_row():
    """Check that an index has the number of a part where a guard leaves no other; a loop of one iteration stays."""
    n = sympy.Symbol("s0", integer=True, positive=True)

    def compute(ops, at):
        batch, part, row = at[0]
        return ops.masked(below(ops, part, 1), lambda: ops.load("in", batch + n * part + n * row), 0.0)

    loops = [sympy.S.One, sympy.Integer(2), ROWS]
    with V.set_graph_handler(SimpleNamespace(sizevars=SimpleNamespace(statically_known_true=bool))):
        guarded, _ = trace(compute, loops).accesses
    assert guarded.index == i + n * iteration_variable(2)
    assert guarded.ranges[j] == (0, 0)


@pytest.mark.parametrize(
    ("guard", "first", "last"),
    [
        (2 * i - 1, 1, 15),
        (12 - 2 * i, 0, 6),
        (13 - 2 * i, 0, 6),
        (4 * i + j - 6, 1, 15),
        (7 - 4 * i - j, 0, 1),
        (i + j - 4, 1, 15),
        (sympy.Symbol("n") - 2 * i, 0, 15),
    ],
    ids=str,
)
def test_a_guard_of_multiples_narrows_the_ranges(guard, first, last):
    """Check guards of multiples, as of a pooling that moves by 2 from the padding, and of blocks of pairs."""
    nest = NestTrace("op0", [(i, ROWS), (j, sympy.Integer(4))], [])
    assert guarded_ranges(nest, (guard,))[i] == (first, last)


def test_a_guard_of_a_remainder_narrows_the_ranges():
    """Check that a guard of a remainder selects the second of each pair, so that the division has no rest."""

    def compute(ops, at):
        remainder = ops.index_expr(ModularIndexing(at[0][0] - 1, 1, 2), torch.int64)
        odd = ops.eq(remainder, ops.constant(0, torch.int64))
        return ops.masked(odd, lambda: ops.load("in", FloorDiv(at[0][0] - 1, 2)), 0.0)

    pairs = trace(compute, factors=[[sympy.Integer(8), sympy.Integer(2)]])
    assert (pairs.accesses[0].index, pairs.accesses[0].ranges[j]) == (i, (1, 1))
    assert trace(compute).accesses[0].ranges[i] == (1, 15)


def test_a_symbolic_number_of_pairs_hid_the_remainder():
    """Check that a guard narrows the range of `j` where the number of pairs `i` is symbolic: `2*i + j >= 1`."""
    pairs = sympy.Symbol("t", integer=True, positive=True)
    nest = NestTrace("op0", [(i, pairs), (j, sympy.Integer(2))], [])
    remainder = ModularIndexing(2 * i + j - 1, 1, 2)
    assert guarded_ranges(nest, (2 * i + j - 1, remainder, -remainder)) == {i: (0, pairs - 1), j: (1, 1)}


def test_a_reduction_with_several_results_has_components():
    def compute(ops, at):
        results = ops.reduction(torch.float32, torch.float32, "welford_reduce", ops.load("in", at[0][0] + at[1][0]))
        assert [(type(r), r.position) for r in results] == [(Component, 0), (Component, 1), (Component, 2)]
        return results[0]

    found = trace(compute, reduction=(COLUMNS,))
    assert found.reduce_vars == [(j, COLUMNS)]


@pytest.mark.parametrize(
    ("compute", "reason"),
    [
        (lambda ops, at: ops.rand_eager(0, 0, 1, at[0][0], 4), Reason.random),
        (lambda ops, at: ops.store("other", at[0][0], 1.0, mode="atomic_add"), Reason.atomics),
        (lambda ops, at: ops.masked(ops.load("mask", at[0][0]), lambda: 1.0, 0.0), Reason.non_affine_mask),
        (lambda ops, at: ops.check_bounds(at[0][0], sympy.Integer(15), True, True), Reason.side_effect),
    ],
)
def test_what_no_loop_of_affine_says_is_refused(compute, reason):
    sizevars = SimpleNamespace(statically_known_true=bool)
    with V.set_graph_handler(SimpleNamespace(sizevars=sizevars)), pytest.raises(Unsupported) as refusal:
        trace(compute)
    assert refusal.value.reason is reason


def test_a_check_that_always_holds_is_dropped():
    def compute(ops, at):
        ops.check_bounds(at[0][0], ROWS, True, True)
        return 1.0

    sizevars = SimpleNamespace(statically_known_true=bool)
    with V.set_graph_handler(SimpleNamespace(sizevars=sizevars)):
        assert [step.op for step in trace(compute).steps] == ["store"]


@pytest.mark.parametrize(("kept", "kinds"), [((0,), ["max"]), ((1,), ["argmax"]), ((0, 1), ["max", "argmax"])])
def test_an_extreme_and_its_index_are_two_reductions_of_which_what_is_used_stays(kept, kinds):
    def extreme(ops, indices):
        found = ops.reduction(torch.float32, torch.float32, "argmax_with_value", ops.load("in", indices[1][0]))
        for i in kept:
            ops.store(f"out{i}", indices[0][0], found[i])
        return ops.constant(0, torch.float32)

    steps = trace(extreme, reduction=(COLUMNS,)).steps
    assert [step.args[2] for step in steps if step.op == "reduction"] == kinds


def test_an_extreme_without_its_index_is_a_plain_one():
    """Check that an extreme without its index is a plain one: its value may have an index, which decides nothing."""

    def extreme(ops, indices):
        value = ops.load("in", indices[1][0])
        return ops.reduction(torch.float32, torch.float32, "argmin_value", (value, ops.index_expr(i, torch.int64)))

    (found,) = [step for step in trace(extreme, reduction=(COLUMNS,)).steps if step.op == "reduction"]
    assert found.args[2] == "min" and found.args[3].op == "load"


def largest_and_halves(x):
    largest, index = torch.max(x, dim=-1)
    first, second = x.chunk(2, -1)
    return (first - largest[:, None]) * torch.sigmoid(second), index


def smallest_and_halves(x):
    first, second = x.chunk(2, -1)
    return (first - torch.min(x, dim=-1).values[:, None]) * torch.sigmoid(second)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("function", [largest_and_halves, smallest_and_halves])
def test_extremes_along_a_dimension_are_fused(function):
    """Check that extremes along a dimension fuse: torch 2.15 has own reductions for them, which were refused."""
    torch.manual_seed(0)
    x = torch.randn(5, 1024)
    x[0, 3] = float("nan")
    x[1, 700:702] = x[1].max() + 1
    ours, _ = run_emitted(function, [x], bridge_backend)
    torch.testing.assert_close(ours, function(x), equal_nan=True, rtol=1e-5, atol=1e-5)
    assert (bridge.report().kernels_before, bridge.report().kernels_after) == (2, 1)
