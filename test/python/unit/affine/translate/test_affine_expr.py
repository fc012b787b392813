"""Test that index expressions of sympy become affine expressions, or are refused."""

from __future__ import annotations

import pytest
import sympy
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

from bridge.affine.mlir_runtime import context, ir
from bridge.affine.translate.affine_expr import AffineBuilder, SymbolTable
from bridge.affine.translate.trace import iteration_variable
from bridge.reasons import Reason, Unsupported

i, j = (iteration_variable(n) for n in range(2))
s0, s1 = (sympy.Symbol(name, integer=True, positive=True) for name in ("s0", "s1"))


@pytest.fixture
def builder():
    with context():
        yield AffineBuilder([i, j])


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (3 * (i + 2), "d0 * 3 + 6"),
        (FloorDiv(j, 4), "d1 floordiv 4"),
        (ModularIndexing(i, 2, 8), "(d0 floordiv 2) mod 8"),
        (sympy.Integer(-7), "-7"),
    ],
)
def test_indices_are_affine_in_the_dimensions(builder, expr, expected):
    assert str(builder.convert(sympy.sympify(expr))) == expected
    assert builder.symbols == []


def test_a_size_is_one_symbol_and_a_product_of_sizes_another(builder):
    affine_map = builder.map([i + s0 * s1, j + 2 * s0, s0 * s1])
    assert (affine_map.n_dims, affine_map.n_symbols) == (2, 2)
    assert builder.symbols == [s0 * s1, s0]
    assert [str(result) for result in affine_map.results] == ["d0 + s0", "d1 + s1 * 2", "s0"]


@pytest.mark.parametrize(
    ("expr", "detail"),
    [
        (s0 * i, "symbolic stride"),
        (FloorDiv(i, s0), "no positive number"),
        (i / 2, "rational coefficient"),
        (abs(i - 3), "not affine"),
        (sympy.Max(i - 3, j), "not affine"),
    ],
)
def test_other_indices_are_refused(builder, expr, detail):
    with pytest.raises(Unsupported, match=detail) as refusal:
        builder.convert(expr)
    assert refusal.value.reason is Reason.non_affine_index


def test_sizes_are_arguments_in_the_order_they_are_met():
    with context(), ir.Location.unknown():
        module = ir.Module.parse("func.func @f(%x: f32) { return }")
        table = SymbolTable(module.body.operations[0].regions[0].blocks[0])
        values = [table.value(expr) for expr in (s1, s0 * s1, s1)]
        assert [ir.BlockArgument(value).arg_number for value in values] == [1, 2, 1]
        assert [str(argument.type) for argument in table.entry.arguments] == ["f32", "index", "index"]
