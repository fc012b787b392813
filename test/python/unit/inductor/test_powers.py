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
from bridge.inductor.powers import _digits, _runs, with_loops_to_split

N, H, W = sympy.symbols("s0 s1 s2", integer=True, positive=True)
HALF = FloorDiv(H, 2)


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
        ([2, 2, 2], [[2], [2], [2]]),
        ([], []),
    ],
)
def test_runs_have_no_symbolic_factor_in_common(extents, runs):
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
        merged = with_loops_to_split(body)
        assert [list(part) for part in merged.sizes] == [[N, side**2], []]
        load, store = merged.indexing_exprs.values()
        image, pixel = merged.iter_vars
        values = {N: 3, H: 6, image: 2, pixel: 5}
        width = int(side.subs(H, 6))
        line, column = divmod(5, width)
        assert load.subs(values) == (2 * width + column) * width + line
        assert store.subs(values) == 2 * width * width + 5
        oblong = _columns_first([N, side, W])
        assert with_loops_to_split(oblong) is oblong
