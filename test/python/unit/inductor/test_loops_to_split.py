"""Test loops that Inductor cannot split a kernel's elements into, and what takes their place."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
import sympy
from torch._inductor.sizevars import SizeVarAllocator
from torch._inductor.virtualized import V, ops
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy.functions import FloorDiv

from bridge.inductor.loops import make_loop_body
from bridge.inductor.loops_to_split import _digits, _groups, _runs, with_loops_to_split
from bridge.inductor.tiles import splits_into, splits_unmerged_into

N, H, W = sympy.symbols("s0 s1 s2", integer=True, positive=True)
HALF = FloorDiv(H, 2)
ONE = sympy.S.One


@pytest.mark.parametrize("run", [[3], [3, 4], [2, 3, 2], [4, 1, 3]])
def test_digits_are_the_iterations_in_order(run):
    x = sympy.Symbol("x", integer=True, nonnegative=True)
    digits = _digits([sympy.Integer(extent) for extent in run], x)
    every = list(itertools.product(*map(range, run)))
    assert [tuple(digit.subs(x, number) for digit in digits) for number in range(len(every))] == every


@pytest.mark.parametrize(
    ("extents", "runs"),
    [
        ([N, H, W], [[N], [H], [W]]),
        ([N, H, H], [[N], [H, H]]),
        ([N, H, 7, H, 7], [[N], [H, 7, H], [7]]),
        ([H, N, N, H, 3], [[H, N, N, H], [3]]),
        ([N, HALF, HALF, 4], [[N], [HALF, HALF], [4]]),
        ([N, H - 1, 7], [[N, H - 1], [7]]),
        ([4, H - 1, 7], [[4], [H - 1], [7]]),
        ([H + W, 4, N], [[H + W, 4, N]]),
        ([N, 2 * H + 2, 7], [[N, 2 * H + 2], [7]]),
        ([2, 2, 2], [[2], [2], [2]]),
        ([], []),
    ],
)
def test_runs_have_no_symbolic_factor_in_common_and_no_sum_beside_one(extents, runs):
    assert _runs(extents) == runs


def _columns_first(sizes):
    """Return loops over (image, line, column) that load along columns."""

    def body(index, reduced):
        image, line, column = index
        address = (image * sizes[1] + column) * sizes[2] + line
        ops.store("out", (image * sizes[1] + line) * sizes[2] + column, ops.load("in", address))

    return make_loop_body(body, sizes, [])


@pytest.mark.parametrize("side", [H, HALF])
def test_square_images_of_a_symbolic_size_could_not_be_split(side):
    """Lines and columns, which are as many, become one loop; nothing is done to what Inductor splits."""
    with V.set_graph_handler(SimpleNamespace(sizevars=SizeVarAllocator(ShapeEnv()))):
        body = _columns_first([N, side, side])
        merged = with_loops_to_split(body, ONE)
        assert [list(part) for part in merged.sizes] == [[N, side**2], []]
        load, store = merged.indexing_exprs.values()
        image, pixel = merged.iter_vars
        values = {N: 3, H: 6, image: 2, pixel: 5}
        width = int(side.subs(H, 6))
        line, column = divmod(5, width)
        assert load.subs(values) == (2 * width + column) * width + line
        assert store.subs(values) == 2 * width * width + 5
        oblong = _columns_first([N, side, W])
        assert with_loops_to_split(oblong, ONE) is oblong


def _tokens_but_the_last(tokens, columns):
    """Return loops over (sequence, token, column) that load all tokens but the last of each sequence."""

    def body(index, reduced):
        sequence, token, column = index
        address = (sequence * (tokens + 1) + token) * columns + column
        ops.store("out", (sequence * tokens + token) * columns + column, ops.load("in", address))

    return make_loop_body(body, [N, tokens, columns], [])


@pytest.mark.parametrize("tokens", [H - 1, H + W])
def test_all_tokens_but_the_last_could_not_be_split(tokens):
    """Inductor does not divide `n*h - n` by `n`: sequences and tokens are one loop, beside that of the columns."""
    with V.set_graph_handler(SimpleNamespace(sizevars=SizeVarAllocator(ShapeEnv()))):
        body = _tokens_but_the_last(tokens, sympy.Integer(64))
        merged = with_loops_to_split(body, sympy.Integer(64))
        assert splits_into(merged, [N * tokens, sympy.Integer(64)])
        if splits_into(body, [N * tokens, sympy.Integer(64)]):  # So does 2.15 where the sum has one symbol.
            assert merged is body
            return
        assert [list(part) for part in merged.sizes] == [[N * tokens, 64], []]
        load, store = merged.indexing_exprs.values()
        row, column = merged.iter_vars
        values = {N: 3, H: 6, W: 2, row: 11, column: 5}
        number = int(tokens.subs(values))
        sequence, token = divmod(11, number)
        assert load.subs(values) == (sequence * (number + 1) + token) * 64 + 5
        assert store.subs(values) == 11 * 64 + 5


def test_loops_could_be_split_only_after_inductor_had_merged_them():
    """Of elements that get a value of their row, Inductor merges the loops of rows: not before it fuses kernels."""

    def body(index, reduced):
        row = index[0] * (H - 1) + index[1]
        ops.store("out", row * 64 + index[2], ops.load("in", row))

    groups = [N * (H - 1), sympy.Integer(64)]
    with V.set_graph_handler(SimpleNamespace(sizevars=SizeVarAllocator(ShapeEnv()))):
        found = with_loops_to_split(make_loop_body(body, [N, H - 1, sympy.Integer(64)], []), sympy.Integer(64))
        assert splits_into(found, groups) and splits_unmerged_into(found, groups)


@pytest.mark.parametrize(
    ("sizes", "columns", "groups"),
    [
        ([[N, H, 64], []], 64, [N * H, 64]),
        ([[N, H, 8, 8], []], 64, [N * H, 64]),
        ([[N, H, 64], []], 8, [64 * N * H, 1]),
        ([[N, H], [64]], 64, [N * H, 64]),
        ([[N, H, W], []], W, [N * H, W]),
        ([[N, H], []], 64, [N * H, 1]),
    ],
)
def test_inner_loops_are_columns_where_they_are_as_many(sizes, columns, groups):
    body = SimpleNamespace(sizes=[[sympy.sympify(size) for size in part] for part in sizes])
    with V.set_graph_handler(SimpleNamespace(sizevars=SizeVarAllocator(ShapeEnv()))):
        assert _groups(body, sympy.sympify(columns)) == groups
