"""Test that the table of Inductor's operations and MLIR's names operations that both have."""

from __future__ import annotations

import pytest
from torch._inductor.ops_handler import OpsHandler

from bridge.affine import ops_table
from bridge.affine.mlir_runtime import context, ir

OPS = ["FLOAT_OPS", "SIGNED_OPS", "UNSIGNED_OPS", "BOOL_OPS", "LOGICAL_OPS", "ROUND_TO_INT"]
COMBINERS = ["FLOAT_COMBINERS", "SIGNED_COMBINERS", "BOOL_COMBINERS"]


@pytest.mark.parametrize("table", [*OPS, *COMBINERS])
def test_mlir_has_the_operations(table):
    with context() as mlir:
        mlir.load_all_available_dialects()
        missing = [name for name in getattr(ops_table, table).values() if not mlir.is_registered_operation(name)]
    assert missing == []


@pytest.mark.parametrize("table", OPS)
def test_inductor_has_the_operations(table):
    python_operators = {"and_", "or_", "xor", "lshift", "rshift"}
    names = getattr(ops_table, table).keys() - python_operators
    assert [name for name in names if not hasattr(OpsHandler, name)] == []


FLOAT_NAMES = {"eq": "oeq", "gt": "ogt", "ge": "oge", "lt": "olt", "le": "ole", "ne": "une"}
SIGNED_NAMES = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
UNSIGNED_NAMES = {"eq": "eq", "ne": "ne", "lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge"}


@pytest.mark.parametrize(
    ("table", "names", "operation", "dtype"),
    [
        (ops_table.FLOAT_PREDICATES, FLOAT_NAMES, "arith.cmpf", "f32"),
        (ops_table.SIGNED_PREDICATES, SIGNED_NAMES, "arith.cmpi", "i32"),
        (ops_table.UNSIGNED_PREDICATES, UNSIGNED_NAMES, "arith.cmpi", "i32"),
    ],
)
def test_predicates_are_numbered_as_mlir_does(table, names, operation, dtype):
    compares = [f"%{k} = {operation} {name}, %a, %b : {dtype}" for k, name in enumerate(names.values())]
    text = f"func.func @f(%a: {dtype}, %b: {dtype}) {{ {' '.join(compares)} return }}"
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        block = module.body.operations[0].regions[0].blocks[0]
        found = [ir.IntegerAttr(op.attributes["predicate"]).value for op in list(block.operations)[:-1]]
    assert dict(zip(names, found, strict=True)) == table


def test_of_several_names_the_first_is_lifted():
    assert ops_table.LIFTED_OPS["arith.andi"] == "bitwise_and"
    assert ops_table.LIFTED_OPS["arith.remf"] == "fmod"
    assert ops_table.LIFTED_BOOL_COMBINERS["arith.ori"] == "any"
    assert ops_table.LIFTED_INT_PREDICATES[ops_table.UNSIGNED_PREDICATES["lt"]] == "lt"


def test_unsigned_numbers_have_operations_of_their_own_where_the_sign_counts():
    assert "abs" not in ops_table.UNSIGNED_OPS
    signed = {"arith.divsi", "arith.floordivsi", "arith.remsi", "arith.shrsi", "arith.minsi", "arith.maxsi"}
    assert not signed & set(ops_table.UNSIGNED_OPS.values())
