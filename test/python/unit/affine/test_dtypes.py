"""Test what torch's dtypes are called in MLIR, and what comes back from there."""

from __future__ import annotations

import pytest
import torch

from bridge.affine.dtypes import (
    LOW_PRECISION,
    UNSIGNED,
    compute_dtype,
    dtype_from_name,
    dtype_name,
    kind,
    least,
    signed_dtype,
    type_name,
)
from bridge.affine.mlir_runtime import context, ir
from bridge.reasons import Reason, Unsupported

SIGNED = [torch.float64, torch.bfloat16, torch.float8_e5m2, torch.float8_e8m0fnu, torch.int64, torch.int8, torch.bool]


@pytest.mark.parametrize("dtype", SIGNED)
def test_signed_dtypes_come_back_from_their_mlir_types(dtype):
    with context():
        parsed = str(ir.Type.parse(type_name(dtype)))
    assert signed_dtype(parsed) is dtype


def test_an_unsigned_dtype_shares_the_mlir_type_of_the_signed_one():
    assert type_name(torch.uint8) == "i8"
    assert signed_dtype("i8") is torch.int8
    assert {torch.uint8, torch.uint16, torch.uint32, torch.uint64} == UNSIGNED


def test_dtypes_without_an_mlir_type_are_refused():
    with pytest.raises(Unsupported, match=r"torch\.complex64") as refusal:
        type_name(torch.complex64)
    assert refusal.value.reason is Reason.unsupported_dtype
    with pytest.raises(Unsupported, match="MLIR type index"):
        signed_dtype("index")


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bfloat16, torch.bool])
def test_names_in_attributes_tell_all_dtypes_apart(dtype):
    assert dtype_from_name(dtype_name(dtype)) is dtype
    assert dtype_name(torch.uint8) == "uint8"


def test_the_least_number_of_a_dtype():
    numbers = {dtype: least(dtype) for dtype in (torch.bool, torch.uint8, torch.int16, torch.bfloat16, torch.float64)}
    assert list(numbers.values()) == [False, 0, -32768, float("-inf"), float("-inf")]
    with pytest.raises(Unsupported, match="float8_e4m3fn") as refusal:
        least(torch.float8_e4m3fn)
    assert refusal.value.reason is Reason.unsupported_dtype


def test_numbers_of_16_bits_are_computed_in_32():
    dtypes = [torch.bfloat16, torch.float16, torch.float64, torch.int8]
    assert list(map(compute_dtype, dtypes)) == [torch.float32, torch.float32, torch.float64, torch.int8]


def test_kinds_of_numbers():
    kinds = {dtype: kind(dtype) for dtype in (torch.float8_e4m3fn, torch.bool, torch.uint16, torch.int16)}
    assert list(kinds.values()) == ["float", "bool", "unsigned", "signed"]
    assert all(kind(dtype) == "float" and dtype.itemsize == 2 for dtype in LOW_PRECISION)
