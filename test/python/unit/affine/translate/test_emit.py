"""Test masked blocks and memory accesses: translated and lifted back, or refused by name."""

import pytest
import sympy
import torch
from torch._inductor.virtualized import V
from translated import COLUMNS, DTYPES, buffers_of, check, pointwise, reason_of

from bridge.reasons import Reason

pytestmark = pytest.mark.usefixtures("graph")


def shifted_load(ops, indices, other, flag=None):
    """Return the row above, and `other` in the first row."""
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
    """Check that a mask of an int8 index is refused: it wraps around, so it says nothing of the iteration."""

    def compute(ops, _, indices):
        index = ops.index_expr(indices[0] * 16, torch.int8)
        at = indices[0] * COLUMNS + indices[1]
        return ops.masked(ops.lt(index, ops.constant(0, torch.int8)), lambda: ops.load("in0", at), 0.0)

    assert reason_of(pointwise(compute), buffers_of(torch.float32, torch.float32)) == Reason.non_affine_mask


def test_masked_region_with_operations_of_another_dtype():
    """Check that a masked result has the dtype of the region's last operation, whatever its operands have.

    Triton's lift returns no region: all lanes compute, and choose.
    """

    def compute(ops, _, indices):
        inside = ops.lt(ops.index_expr(indices[0], torch.int64), ops.constant(8, torch.int64))
        at = indices[0] * COLUMNS + indices[1]
        return ops.masked(inside, lambda: ops.int_truediv(ops.load("in0", at), ops.constant(3, torch.int32)), 0.0)

    check(pointwise(compute), buffers_of(torch.int32, torch.float32), triton=False)


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
    """Check that a bounds check that always holds is dropped, and one that may fail is an effect."""

    def compute(ops, values, indices):
        ops.check_bounds(indices[0], sympy.Integer(size), True, True)
        return values[0]

    assert reason_of(pointwise(compute, 1), buffers_of(torch.float32, torch.float32)) == reason
