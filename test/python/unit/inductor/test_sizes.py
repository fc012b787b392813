"""Test what is known of symbolic sizes, and how index expressions step over loops and divide them."""

from types import SimpleNamespace

import pytest
import sympy
from torch._inductor.sizevars import SizeVarAllocator
from torch._inductor.virtualized import V
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy.functions import FloorDiv, Identity, Max, ModularIndexing

from bridge.inductor import sizes

I, J = sympy.symbols("i j", integer=True, nonnegative=True)
S = sympy.Symbol("s0", integer=True, positive=True)


def _body(*expressions):
    indexing = {f"index{number}": expression for number, expression in enumerate(expressions)}
    return SimpleNamespace(iter_vars=[I, J], var_ranges={I: S, J: sympy.Integer(98)}, indexing_exprs=indexing)


def test_only_what_holds_for_all_sizes_is_known():
    with V.set_graph_handler(SimpleNamespace(sizevars=SizeVarAllocator(ShapeEnv()))):
        assert sizes.statically_known(sympy.Ge(S, 1))
        assert sizes.statically_known(True)
        assert not sizes.statically_known(sympy.Ge(S, 2))
        assert not sizes.statically_known(sympy.Eq(S, 0))


def test_divisions_of_sizes_are_told_from_those_of_loops():
    of_sizes = FloorDiv(S, 2)
    assert sizes.size_expressions(_body(J + I * of_sizes, FloorDiv(J, 7))) == [of_sizes]
    assert sizes.size_expressions(SimpleNamespace(var_ranges={I: S})) == []


def test_sizes_whose_strides_are_at_least_one_are_found():
    other = sympy.Symbol("s1", integer=True)
    indices = J + 32 * I * Max(1, other), I * Max(S, other), I * Max(2, S), I * Max(1, 3 * other), Max(1, I)
    assert sizes.sizes_in_maxima(_body(*indices)) == [3 * other, other]
    assert sizes.sizes_in_maxima(SimpleNamespace(var_ranges={I: S})) == []


@pytest.mark.parametrize(
    ("index", "steps"), [(I + J, False), (2 * I + J, True), (J - 2 * I, True), (S * I + J, False), (-J, False)]
)
def test_steps_are_numbers_above_one(index, steps):
    assert sizes.has_steps(_body(index)) is steps


def test_loops_are_cut_where_indices_divide_them():
    body = _body(FloorDiv(J, 49) + I, ModularIndexing(J, 7, 7), FloorDiv(I, S))
    assert sizes.loop_cuts(body) == [{S}, {7, 49}]
    assert sizes.loop_cuts(body, lambda index: index.xreplace({J: I})) == [{7, 49, S}, set()]
    of_groups = _body(FloorDiv(I, 4 * S) + ModularIndexing(I, 1, S))
    assert sizes.loop_cuts(of_groups) == [{S, 4 * S}, set()]


def test_strides_of_each_access_are_those_of_its_loops():
    body = _body(I * S + 2 * J, 2 * J + 1)
    entry = SimpleNamespace
    body.memory_usage = {
        "load": [entry(buffer_name="x", index_name="index0")],
        "store": [entry(buffer_name="y", index_name="index1"), entry(buffer_name=None, index_name="index0")],
    }
    assert sizes.loop_strides(body) == [("x", [S, 2]), ("y", [0, 2])]
    assert sizes.loop_strides(SimpleNamespace(var_ranges={I: S})) == []


def test_remainders_that_are_values_are_no_addresses():
    body = _body(ModularIndexing(J, 1, 7), ModularIndexing(J, 1, 2), ModularIndexing(I, 3, 2), ModularIndexing(I, 1, S))
    body.memory_usage = {"load": [SimpleNamespace(buffer_name="x", index_name="index0")]}
    assert sizes.loop_remainders(body) == [set(), {2}]
    assert sizes.loop_remainders(body, lambda index: index.xreplace({J: I})) == [{2}, set()]


def test_the_remainder_of_odd_elements_was_none_of_their_loop():
    """Check that the remainder of a shifted variable counts, and that of another sum does not."""
    body = _body(ModularIndexing(J - 1, 1, 2), ModularIndexing(I + 3, 1, 4), ModularIndexing(I + J, 1, 8))
    assert sizes.loop_remainders(body) == [{4}, {2}]


def test_hint_of_an_unknown_size_is_typical():
    def hint(expr, fallback):
        return fallback if expr.free_symbols else expr

    for name in ("optimization_hint", "size_hint"):  # by the version of torch
        with V.set_graph_handler(SimpleNamespace(sizevars=SimpleNamespace(**{name: hint}))):
            assert sizes.size_hint(S) == 4096
            assert sizes.size_hint(sympy.Integer(12)) == 12


def test_hint_of_an_index_that_is_loaded():
    """Check that what is loaded counts as an unknown size: torch 2.11 asserted that it is a symbol of a size."""
    loaded = sympy.Symbol("tmp3", integer=True, nonnegative=True)
    with V.set_graph_handler(SimpleNamespace(sizevars=SizeVarAllocator())):
        assert sizes.size_hint(3 * loaded + 64) == 3 * sizes.UNKNOWN_SIZE + 64


def test_hint_of_an_index_that_inductor_wraps():
    """Check the hint of an index in `Identity`, as a `cat` has: torch 2.11 asserted that it has a symbol."""

    def hint(expr, fallback):
        assert not expr.has(Identity)
        return fallback if expr.free_symbols else expr

    with V.set_graph_handler(SimpleNamespace(sizevars=SimpleNamespace(optimization_hint=hint))):
        assert sizes.size_hint(Identity(sympy.Integer(0))) == 0
        assert sizes.size_hint(3 * Identity(S)) == 4096
        assert sizes.size_hint(2 * Identity(Identity(sympy.Integer(-128)))) == -256
        assert sizes.step_along(7 * Identity(I // 2 + J), J, {I, J}) == 7


def test_a_size_assumed_to_be_a_larger_multiple_divided_by_zero():
    """Check a size assumed to be a larger multiple, which divided by zero: 97 columns are no windows of 292."""

    def hint(expr, fallback):
        return expr.xreplace({S: sympy.Integer(97)})

    with V.set_graph_handler(SimpleNamespace(sizevars=SimpleNamespace(optimization_hint=hint))):
        assert sizes.size_hint(FloorDiv(S, FloorDiv(S, 292))) == 4096


@pytest.mark.parametrize(
    "index, step",
    [
        (96 * I + 2 * J + S, 2),
        (S * I, 0),
        (J, 1),
        (S * J, None),
        (S * (I + J), None),
        (J + ModularIndexing(J, 1, 4), None),
        (I * J, None),
    ],
)
def test_the_step_of_an_index_is_known_where_it_is_one_number_in_all_iterations(index, step):
    assert sizes.linear_step(index, J) == step


def test_extents_are_numbers_where_they_can_be():
    with V.set_graph_handler(SimpleNamespace(sizevars=SizeVarAllocator(ShapeEnv()))):
        found = sizes.as_extent(sympy.Integer(7)), sizes.as_extent(8 * (S + 1) - 8 * S)
        assert found == (7, 8) and all(type(number) is int for number in found)
        assert sizes.as_extent(2 * (S + 3)) == 2 * S + 6
        assert sizes.are_equal(S * (S + 1), S**2 + S) and not sizes.are_equal(S, 2 * S) and not sizes.are_equal(3, 4)


def test_blocks_of_rows():
    """Check the number of blocks of rows, the last of which may have fewer, for any number of rows."""
    assert sizes.divided_up(33, 16) == 3 and sizes.divided_up(32, 16) == 2 and sizes.divided_up(64 * S, 16) == 4 * S
    blocks = sympy.sympify(sizes.divided_up(S, 16))
    assert [blocks.subs(S, rows) for rows in (1, 2, 16, 17, 1000)] == [1, 1, 1, 2, 63]


def test_groups_have_as_many_rows_each():
    with V.set_graph_handler(SimpleNamespace(sizevars=SizeVarAllocator(ShapeEnv()))):
        assert sizes.of_each(12, 3) == 4 and sizes.of_each(256 * S, S) == 256 and sizes.of_each(6 * S, 3) == 2 * S
        assert [sizes.known_divisor(e) for e in (12, S, 40 * S, 8 * S + 12)] == [12, 1, 40, 4]


@pytest.mark.parametrize(
    ("loops", "run"),
    [
        ([(1, 7), (7, 8), (392, 8)], 56),
        ([(1, 7), (56, 8)], 7),
        ([(2, 8)], 1),
        ([(0, 1), (1, 8), (0, 1), (8, 2)], 16),
        ([], 1),
    ],
)
def test_iterations_follow_each_other_in_memory_up_to_the_first_gap(loops, run):
    assert sizes.contiguous_run(loops) == run


def test_a_size_that_equals_another_has_what_inductor_has_in_its_place():
    environment = ShapeEnv()
    first, second = sympy.symbols("s1 s2", integer=True, positive=True)
    environment.replacements[first] = second
    with V.set_graph_handler(SimpleNamespace(sizevars=SizeVarAllocator(environment))):
        assert sizes.equal_sizes([first, second, S]) == {first: second}
