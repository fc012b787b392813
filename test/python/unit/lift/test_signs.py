"""Test which integers are unsigned: a constant is what it is used with."""

from __future__ import annotations

import pytest
import torch

from bridge.affine.mlir_runtime import context, ir
from bridge.lowering.lift.signs import is_integer_constant, unsigned_beside, unsigned_dtype


def function(text):
    """Return a module's function of two memrefs of bytes; its operations live as long as the module."""
    return ir.Module.parse(f"""func.func @f(%x: memref<8xi8>, %y: memref<8xi8>) {{
      %i = arith.constant 0 : index %c = arith.constant 5 : i8 %flag = arith.constant true
      %u = affine.load %x[%i] : memref<8xi8> %s = affine.load %y[%i] : memref<8xi8> {text} return }}""")


def operations(module, name):
    entry = module.body.operations[0].operation.regions[0].blocks[0]
    return [op.operation for op in entry.operations if op.operation.name == name]


def element(memref):
    """Return the dtype of the first memref's elements, unsigned, or of the second's."""
    return [torch.uint8, torch.int8][ir.BlockArgument(memref).arg_number]


@pytest.fixture(autouse=True)
def mlir():
    with context(), ir.Location.unknown():
        yield


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%r = arith.subi %c, %u : i8", torch.uint8),
        ("%r = arith.subi %u, %c : i8", torch.uint8),
        ("%r = arith.subi %c, %s : i8", None),
        ("%r = arith.subi %c, %c : i8", None),
        ("%t = arith.addi %u, %u : i8 %r = arith.subi %t, %c : i8", torch.uint8),
        ("%t = arith.select %flag, %c, %u : i8 %r = arith.subi %c, %t : i8", torch.uint8),
        ("%t = arith.extsi %s : i8 to i16 %w = arith.trunci %t : i16 to i8 %r = arith.subi %c, %w : i8", None),
        ('%t = bridge.convert %s {from = "int8", to = "uint8"} : i8 -> i8 %r = arith.subi %c, %t : i8', torch.uint8),
        ('%t = bridge.convert %u {from = "uint8", to = "int8"} : i8 -> i8 %r = arith.subi %c, %t : i8', None),
    ],
)
def test_a_constant_is_what_it_is_used_with(text, expected):
    module = function(text)
    (used,) = operations(module, "arith.subi")
    found = [unsigned_beside(operand, used, element) for operand in used.operands if is_integer_constant(operand)]
    assert found and set(found) == {expected}


def test_a_guard_has_what_it_yields():
    text = "%r = affine.if affine_set<() : (0 == 0)>() -> i8 { affine.yield %u : i8 } else { affine.yield %c : i8 }"
    module = function(text)
    (guard,) = operations(module, "affine.if")
    assert unsigned_dtype([guard.results[0]], element) is torch.uint8


def test_each_value_of_a_hash_is_looked_at_once():
    """Check that each value of a hash is looked at once: 64 steps that use the one before twice have 2^64 ways."""
    steps = [f"%v{n + 1} = arith.xori %v{n}, %v{n} : i8" for n in range(64)]
    module = function(" ".join(["%v0 = arith.addi %s, %s : i8", *steps, "%r = arith.subi %c, %v64 : i8"]))
    (used,) = operations(module, "arith.subi")
    assert unsigned_beside(used.operands[0], used, element) is None


def test_flags_and_places_are_no_numbers():
    module = function("")
    assert [is_integer_constant(op.results[0]) for op in operations(module, "arith.constant")] == [False, True, False]
    assert not any(is_integer_constant(op.results[0]) for op in operations(module, "affine.load"))
