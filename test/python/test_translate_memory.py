"""Masked blocks, memory accesses, reductions and groups: translated and lifted back, or refused by name."""

import pytest
import sympy
import torch
from test_translate_ops import (  # noqa: F401
    COLUMNS,
    DTYPES,
    FLOATS,
    ROWS,
    buffers_of,
    check,
    graph,
    pointwise,
    reason_of,
)
from torch._inductor.virtualized import V

from bridge.affine.translate.group import GroupTarget, NodeSource, make_prover, trace_group, translate_group
from bridge.reasons import Reason


def shifted_load(ops, indices, other, flag=None):
    """The row above, and `other` in the first row."""
    at = (indices[0] - 1) * COLUMNS + indices[1]
    inside = ops.ge(ops.index_expr(indices[0], torch.int64), ops.constant(1, torch.int64))
    mask = inside if flag is None else ops.and_(inside, flag)
    return ops.masked(mask, lambda: ops.load("in0", at), other)


@pytest.mark.parametrize("dtype", DTYPES)
def test_masked(dtype):
    others = [False, True] if dtype == torch.bool else [0, 100, 1.0]
    others += [-float("inf"), 0.5] if dtype.is_floating_point else []
    for other in others:
        body = pointwise(lambda ops, _, indices, other=other: shifted_load(ops, indices, other))
        check(body, buffers_of(dtype, dtype))


def test_masked_by_other_conditions():
    buffers = buffers_of(torch.float32, torch.float32)
    for name, bound in (("lt", 8), ("le", 7), ("gt", 3), ("ge", 4), ("eq", 5)):

        def compute(ops, _, indices, name=name, bound=bound):
            index, limit = ops.index_expr(indices[0], torch.int64), ops.constant(bound, torch.int64)
            at = indices[0] * COLUMNS + indices[1]
            return ops.masked(getattr(ops, name)(index, limit), lambda: ops.load("in0", at), 0.0)

        check(pointwise(compute), buffers)


def test_mask_of_a_narrow_index_is_refused():
    """An int8 index wraps around, so its comparison says nothing of the iteration."""

    def compute(ops, _, indices):
        index = ops.index_expr(indices[0] * 16, torch.int8)
        at = indices[0] * COLUMNS + indices[1]
        return ops.masked(ops.lt(index, ops.constant(0, torch.int8)), lambda: ops.load("in0", at), 0.0)

    assert reason_of(pointwise(compute), buffers_of(torch.float32, torch.float32)) == Reason.non_affine_mask


def test_masked_region_with_operations_of_another_dtype():
    """The dtype of the result is that of the region's last operation, whatever it is made of."""

    def compute(ops, _, indices):
        inside = ops.lt(ops.index_expr(indices[0], torch.int64), ops.constant(8, torch.int64))
        at = indices[0] * COLUMNS + indices[1]
        return ops.masked(inside, lambda: ops.int_truediv(ops.load("in0", at), ops.constant(3, torch.int32)), 0.0)

    check(pointwise(compute), buffers_of(torch.int32, torch.float32))


def test_masked_by_data_is_refused():
    def compute(ops, values, indices):
        return shifted_load(ops, indices, 0.0, flag=ops.lt(values[0], ops.constant(0.0, torch.float32)))

    assert reason_of(pointwise(compute, 1), buffers_of(torch.float32, torch.float32)) == Reason.non_affine_mask


def test_load_out_of_bounds_is_refused():
    def compute(ops, _, indices):
        return ops.load("in0", indices[0] * COLUMNS + indices[1] + 1)

    assert reason_of(pointwise(compute), buffers_of(torch.float32, torch.float32)) == Reason.subscript_out_of_bounds


def test_store_with_a_mode_is_refused():
    def body(indices, _):
        ops = V.get_ops_handler()
        ops.store("out", indices[0], ops.constant(1.0, torch.float32), mode="atomic_add")

    assert reason_of(body, buffers_of(torch.float32, torch.float32)) == Reason.atomics


@pytest.mark.parametrize("size, reason", [(16, None), (15, Reason.side_effect)])
def test_check_bounds(size, reason):
    """A check that always holds is dropped, one that may fail is an effect."""

    def compute(ops, values, indices):
        ops.check_bounds(indices[0], sympy.Integer(size), True, True)
        return values[0]

    assert reason_of(pointwise(compute, 1), buffers_of(torch.float32, torch.float32)) == reason


def reduction(kind, dtype, source, outputs=1):
    """A body that reduces the rows of in0 (three operands for welford_combine) to `out`."""

    def body(indices, reduce_indices):
        ops = V.get_ops_handler()
        at = indices[0] * COLUMNS + reduce_indices[0]
        count = 3 if kind == "welford_combine" else 1
        values = tuple(ops.load(f"in{k}", at) for k in range(count))
        result = ops.reduction(dtype, source, kind, values if count > 1 else values[0])
        ops.store_reduction("out", indices[0], result[outputs - 1] if isinstance(result, tuple) else result)

    return body


def reduce_rows(kind, dtype, source, result=None, outputs=1):
    body = reduction(kind, dtype, source, outputs)
    return reason_of(body, buffers_of(source, result or dtype), ((ROWS,), (COLUMNS,)))


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
def test_reduction_of_numbers(kind):
    for dtype in [*FLOATS, torch.int8, torch.int16, torch.int32, torch.int64]:
        assert reduce_rows(kind, dtype, dtype) is None, dtype
    assert reduce_rows(kind, torch.uint8, torch.uint8) == Reason.unsupported_dtype


def test_reduction_of_bits():
    assert reduce_rows("any", torch.bool, torch.bool) is None
    assert reduce_rows("max", torch.bool, torch.bool) is None
    assert reduce_rows("min", torch.bool, torch.bool) is None
    assert reduce_rows("xor_sum", torch.bool, torch.bool) is None
    assert reduce_rows("xor_sum", torch.int64, torch.int64) is None
    assert reduce_rows("xor_sum", torch.float32, torch.float32) == Reason.unsupported_op
    assert reduce_rows("dot", torch.float32, torch.float32) == Reason.unsupported_op


@pytest.mark.parametrize("kind", ["argmax", "argmin"])
def test_reduction_to_an_index(kind):
    for source in [*FLOATS, torch.int32, torch.int64, torch.bool]:
        assert reduce_rows(kind, torch.int64, source) is None, source
    assert reduce_rows(kind, torch.int64, torch.uint8) == Reason.unsupported_dtype


@pytest.mark.parametrize("kind, outputs", [("welford_reduce", 3), ("welford_combine", 3), ("online_softmax_reduce", 2)])
def test_reduction_of_several_values(kind, outputs):
    for dtype in FLOATS:
        for which in range(1, outputs + 1):
            assert reduce_rows(kind, dtype, dtype, outputs=which) is None, dtype


def test_reduction_over_several_loops():
    def body(indices, reduce_indices):
        ops = V.get_ops_handler()
        i, j = reduce_indices
        ops.store_reduction("out", sympy.Integer(0), ops.reduction(*kind, ops.load("in0", i * COLUMNS + j)))

    for kind in ((torch.float32, torch.float32, "sum"), (torch.int64, torch.float32, "argmax")):
        check(body, buffers_of(torch.float32, kind[0]), ((), (ROWS, COLUMNS)))


def test_reduction_loops_without_a_reduction_are_refused():
    def body(indices, reduce_indices):
        ops = V.get_ops_handler()
        at = indices[0] * COLUMNS + reduce_indices[0]
        ops.store("out", at, ops.load("in0", at))

    assert reason_of(body, buffers_of(torch.float32, torch.float32), ((ROWS,), (COLUMNS,))) == Reason.unsupported_op


def test_a_node_without_iteration_variables_gives_all_a_unit_loop():
    """Bands are shared loop by loop, so every nest of the group needs the loop that one of them lacks."""

    def rows(indices, _):
        ops = V.get_ops_handler()
        ops.store("out", indices[0], ops.load("in0", indices[0]))

    def total(_, reduce_indices):
        ops = V.get_ops_handler()
        value = ops.reduction(torch.float32, torch.float32, "sum", ops.load("out", reduce_indices[0]))
        ops.store_reduction("in1", sympy.Integer(0), value)

    sources = [NodeSource("op0", rows, ([ROWS], []), 0), NodeSource("op1", total, ([], [ROWS]), 0)]
    target = GroupTarget(lambda name: torch.float32, lambda name: ROWS, make_prover(), True)
    translation = translate_group("group", sources, trace_group(sources), target)
    entry = translation.module.body.operations[0].regions[0].blocks[0]
    nests = [op for op in entry.operations if op.operation.name == "affine.for"]
    assert [str(nest).splitlines()[0].endswith("= 0 to 1 {") for nest in nests] == [True, True]
    without = translate_group("group", sources[:1], trace_group(sources[:1]), target)
    assert "to 1 {" not in str(without.module)
