"""Test what corrects Triton's interpreter: conversions, the order of reductions, and that nothing stays patched."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.jit import JITFunction

from bridge.offline import _interpreter_stubs as stubs


def add(a, b):
    return a + b


combine = None


def reduce_row(source, result, SIZE: tl.constexpr):
    row = tl.load(source + tl.arange(0, SIZE))
    tl.store(result, tl.reduce(row, 0, combine))


def scan_row(source, result, SIZE: tl.constexpr):
    row = tl.load(source + tl.arange(0, SIZE))
    tl.store(result + tl.arange(0, SIZE), tl.associative_scan(row, 0, combine))


def count_row(source, result, SIZE: tl.constexpr):
    lanes = tl.arange(0, SIZE)
    ones = tl.full([1], 1.0, tl.float32)
    tl.atomic_add(result + lanes % 4, ones, tl.load(source + lanes) > 0)


def add_row(source, result, SIZE: tl.constexpr):
    lanes = tl.arange(0, SIZE)
    values = tl.load(source + lanes)
    tl.atomic_add(result + lanes % 2, values.to(tl.bfloat16), values != 7)


def interpret(monkeypatch, kernel, values, results, dtype=torch.float32):
    source, result = torch.tensor(values), torch.zeros(results, dtype=dtype)
    with stubs.interpreted_triton():
        monkeypatch.setitem(globals(), "combine", triton.jit(add))
        triton.jit(kernel)[(1,)](source, result, SIZE=len(values))
    return result.tolist()


def test_triton_is_interpreted_within_the_block_only_and_after_an_error_too():
    before, environment = dict(vars(tl)), os.environ.get("TRITON_INTERPRET")
    assert isinstance(tl.sum, JITFunction)
    with pytest.raises(ZeroDivisionError), stubs.interpreted_triton():
        assert isinstance(tl.sum, interpreter.InterpretedFunction)
        assert tl.sum is tl.standard.sum
        assert os.environ["TRITON_INTERPRET"] == "1"
        tl.left_behind = 1
        1 / 0  # noqa: B018
    assert dict(vars(tl)) == before
    assert os.environ.get("TRITON_INTERPRET") == environment


def rows(source, result, SIZE: tl.constexpr):
    row = tl.load(source + tl.arange(0, SIZE))
    tl.store(result, tl.sum(row, 0) + tl.max(tl.sigmoid(row), 0) + tl.sum(tl.flip(row, 0), 0))


def test_triton_is_patched_once_and_not_for_each_call_of_a_device_function(monkeypatch):
    """Check that Triton is patched once, and not for each call of a device function.

    The interpreter looked at all members of Triton's language for each: half of the time of a kernel.
    """
    patched, patch = [], interpreter._patch_lang
    monkeypatch.setattr(interpreter, "_patch_lang", lambda function: (patched.append(function), patch(function))[1])
    before = [dict(vars(owner)) for owner in stubs._PATCHED_BY_INTERPRETER]
    source, result = torch.zeros(4), torch.zeros(3)
    with stubs.interpreted_triton():
        triton.jit(rows)[(2,)](source, result, SIZE=4)
        triton.jit(rows)[(2,)](source, result, SIZE=4)
    assert result[0] == 0.5
    assert 1 <= len(patched) <= 2  # for what has Triton's language in its globals, and what has the core of it
    assert [dict(vars(owner)) for owner in stubs._PATCHED_BY_INTERPRETER] == before


def test_checks_for_overflows_whose_outcome_nobody_asks_for_are_not_computed():
    builder, before = interpreter.interpreter_builder, interpreter.interpreter_builder.options
    with stubs.interpreted_triton():
        assert builder.options.sanitize_overflow is before.debug
    assert builder.options is before


def test_types_that_are_kept_are_those_that_triton_makes():
    scalars = [tl.int1, tl.bfloat16, tl.float8e5, tl.int64, tl.pointer_type(tl.float32)]
    dtypes = [*scalars, *(tl.block_type(scalar, [2, 4]) for scalar in scalars)]
    tuples = [[], [tl.constexpr(2), tl.constexpr(4)], [tl.constexpr(True), tl.constexpr(1.0)], [2, tl.float32]]
    plain = [*map(interpreter._get_np_dtype, dtypes), *(tl.core._type_for_tuple_values(t).name for t in tuples)]
    with stubs.interpreted_triton():
        for _ in range(2):
            kept = [*map(interpreter._get_np_dtype, dtypes), *(tl.core._type_for_tuple_values(t).name for t in tuples)]
            assert kept == plain


def test_conversions_round_to_nearest_and_saturate():
    data = np.array([1.99999, -1.99999, 1000.0], dtype=np.float32)
    with stubs.interpreted_triton():
        halves = interpreter._convert_float(data, tl.float32, tl.bfloat16, None)
        eighths = interpreter._convert_float(data, tl.float32, tl.float8e4nv, None)
    assert [hex(bits) for bits in halves] == ["0x4000", "0xc000", "0x447a"]
    assert [hex(bits) for bits in eighths] == ["0x40", "0xc0", "0x7e"]


def test_neighbours_are_summed_first(monkeypatch):
    """Check that neighbours are summed first: in float32, 2 ** 24 + 1 is lost, and + 2 is not."""
    assert interpret(monkeypatch, reduce_row, [2.0**24, 1.0, 1.0, 1.0], 1) == [2.0**24 + 2]


def test_scan_holds_every_partial_sum(monkeypatch):
    assert interpret(monkeypatch, scan_row, [1.0, 2.0, 3.0, -6.0], 4) == [1.0, 3.0, 6.0, 0.0]


def test_a_number_is_added_in_every_lane_and_not_what_lies_behind_it_in_memory(monkeypatch):
    """Check that a number is added in every lane: counts of `index_add` of ones were what memory held behind it."""
    assert interpret(monkeypatch, count_row, [1.0, 0.0] * 8, 4) == [4.0, 0.0, 4.0, 0.0]


def test_every_lane_adds_to_bfloat16_and_rounds(monkeypatch):
    """Check that every lane adds to bfloat16 and rounds (256 + 1 is 256): the interpreter failed for that type."""
    row = [256.0, 1.5, 1.0, 2.0, 1.0, 7.0, 7.0, -4.0]
    assert interpret(monkeypatch, add_row, row, 2, torch.bfloat16) == [256.0, -0.5]


def test_numbers_become_tensors_of_the_type_of_those_beside_them():
    x = torch.tensor([1.5, -2.0], dtype=torch.float64)
    tensor, number = stubs.to_torch((stubs.from_torch(x), tl.constexpr(3)))
    assert torch.equal(tensor, x)
    assert (number.item(), number.dtype) == (3.0, torch.float64)
    (alone,) = stubs.to_torch((3,))
    assert alone.dtype == torch.float32
    bits = np.array([0x4000, 0xBF80], dtype=np.uint16)
    handle = interpreter.TensorHandle(bits, tl.bfloat16)
    (half,) = stubs.to_torch((tl.tensor(handle, tl.block_type(tl.bfloat16, [2])),))
    assert torch.equal(half, torch.tensor([2.0, -1.0], dtype=torch.bfloat16))
