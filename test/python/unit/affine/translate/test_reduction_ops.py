"""Test reductions: translated and lifted back, or refused by name."""

from __future__ import annotations

import pytest
import sympy
import torch
from torch._inductor.virtualized import V
from translated import COLUMNS, FLOATS, ROWS, buffers_of, check, reason_of

from bridge.reasons import Reason

pytestmark = pytest.mark.usefixtures("graph")


def reduction(kind, dtype, source, outputs=1):
    """Return a body that reduces the rows of in0 (three operands for welford_combine) to `out`."""

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
