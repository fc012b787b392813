"""Test delinearisation: subscripts that are in bounds, so that equal addresses have equal subscripts."""

import itertools
from typing import Any

import pytest
import sympy
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

from bridge.affine.translate.access import (
    LinearAccess,
    Prover,
    bounds,
    delinearise,
    divide_constraint,
    exact_quotient,
)
from bridge.affine.translate.trace import NestTrace, guarded_ranges, iteration_variable
from bridge.reasons import Reason, Unsupported

i, j, k, r = (iteration_variable(n) for n in range(4))
s0, s1 = (sympy.Symbol(name, integer=True, positive=True) for name in ("s0", "s1"))
SMALLEST = {s0: 2, s1: 2}


def known(condition):
    """Return True if a condition holds for sizes of 2 or more.

    A polynomial is nonnegative if it is one in (s - 2) with nonnegative coefficients.
    """
    if condition in (sympy.true, sympy.false):
        return bool(condition)
    shifted = sympy.expand(condition.lhs.subs({s: s + low for s, low in SMALLEST.items()}))
    return isinstance(condition, sympy.Ge) and all(c >= 0 for c in shifted.as_coefficients_dict().values())


PROVER = Prover(known, lambda expr: int(expr.subs({s0: 1 << 13, s1: 1 << 7})))


def access(index, extents, guards=()):
    """Return an access over loops of the given extents, under constraints `expr >= 0`."""
    trace = NestTrace("op0", [(v, sympy.sympify(e)) for v, e in extents.items()], [])
    ranges = guarded_ranges(trace, tuple(guards))
    return LinearAccess("buf0", sympy.expand(sympy.sympify(index)), ranges, is_write=False, guards=tuple(guards))


def strides_of(accesses, numel):
    """Return the strides that are found, after a check of every access by enumeration for several sizes."""
    view = delinearise("buf0", accesses, sympy.sympify(numel), PROVER)
    for sizes in ({s0: 2, s1: 2}, {s0: 3, s1: 5}, {s0: 7, s1: 4}):
        for one in accesses:
            enumerate_access(view, one, sizes)
    return view.strides


def enumerate_access(view, one, sizes):
    """Check that addresses are what the index says, and that all subscripts but the outermost are digits of them."""
    strides = [int(s.subs(sizes)) for s in view.strides]
    extents = [int(s.subs(sizes)) for s in view.sizes[1:]]
    index, subscripts = one.index.subs(sizes), [s.subs(sizes) for s in view.subscripts[one]]
    variables = sorted(one.ranges, key=str)
    for point in sample(one, variables, sizes):
        at = dict(zip(variables, point, strict=True))
        digits = [int(s.subs(at)) for s in subscripts]
        assert sum(d * s for d, s in zip(digits, strides, strict=True)) == index.subs(at)
        assert digits[0] >= 0
        assert all(0 <= d < n for d, n in zip(digits[1:], extents, strict=True))


def sample(one, variables, sizes):
    """Return corners and neighbours of the box that the guards admit: affine subscripts are extreme there."""
    ranges = [[int(sympy.sympify(b).subs(sizes)) for b in one.ranges[v]] for v in variables]
    values = [sorted({low, min(low + 1, high), (low + high) // 2, high}) for low, high in ranges]
    points = itertools.product(*values)
    at = (dict(zip(variables, point, strict=True)) for point in points)
    return [tuple(p.values()) for p in at if all(g.subs(sizes).subs(p) >= 0 for g in one.guards)]


def refused(accesses, numel):
    with pytest.raises(Unsupported) as caught:
        delinearise("buf0", accesses, sympy.sympify(numel), PROVER)
    return caught.value.reason


def test_rows():
    assert strides_of([access(8192 * i + j, {i: 2048, j: 8192})], 2048 * 8192) == [8192, 1]


def test_one_element():
    assert strides_of([access(0, {i: 4})], 1) == [1]
    assert strides_of([access(5, {i: 4})], 8) == [1]


def test_constant_offset_stays_in_the_row():
    """Check that the halves of a row are two intervals of one dimension."""
    halves = [access(8192 * i + j + c, {i: 16, j: 4096}) for c in (0, 4096)]
    assert strides_of(halves, 16 * 8192) == [8192, 1]


def test_constant_offset_of_whole_rows():
    view = delinearise("buf0", [access(8 * i + j + 24, {i: 2, j: 8})], sympy.Integer(40), PROVER)
    assert list(view.subscripts.values()) == [[i + 3, j]]


def test_offset_that_crosses_rows():
    """Check that an offset that leaves the row gives no dimension of rows."""
    assert strides_of([access(8 * i + j + 5, {i: 2, j: 8})], 32) == [1]


def test_flip():
    view = delinearise("buf0", [access(8191 - j, {j: 8192})], sympy.Integer(8192), PROVER)
    assert list(view.subscripts.values()) == [[8191 - j]]
    assert strides_of([access(8 * i - j + 7, {i: 4, j: 8}), access(-8 * i + j + 24, {i: 4, j: 8})], 32) == [8, 1]
    assert strides_of([access(31 - 8 * i - j, {i: 4, j: 8})], 32) == [8, 1]


def test_interleaved():
    """Check that even and odd elements are two values of one subscript."""
    pairs = [access(64 * i + 2 * j, {i: 4, j: 32}), access(64 * i + 2 * j + 1, {i: 4, j: 32})]
    assert strides_of(pairs, 256) == [64, 2, 1]
    view = delinearise("buf0", pairs, sympy.Integer(256), PROVER)
    assert [view.subscripts[p] for p in pairs] == [[i, j, 0], [i, j, 1]]


def test_interleaved_beside_whole_rows():
    whole = access(64 * i + j, {i: 4, j: 64})
    assert strides_of([access(64 * i + 2 * j + 1, {i: 4, j: 32}), whole], 256) == [64, 1]


def test_heads():
    heads = access(4096 * i + 128 * j + k, {i: 8, j: 32, k: 128})
    assert strides_of([heads], 8 * 4096) == [4096, 128, 1]
    assert strides_of([heads, access(4096 * i + r, {i: 8, r: 4096})], 8 * 4096) == [4096, 1]


def test_merged_rows():
    """Check one loop over all rows beside one for each of batch and sequence."""
    merged = access(8192 * i + j, {i: 1024, j: 8192})
    split = access(4194304 * i + 8192 * k + j, {i: 2, k: 512, j: 8192})
    assert strides_of([merged, split], 1024 * 8192) == [8192, 1]
    assert strides_of([split], 1024 * 8192) == [4194304, 8192, 1]


def test_transposed_and_plain():
    plain, transposed = access(8 * i + j, {i: 4, j: 8}), access(8 * j + i, {i: 8, j: 4})
    assert strides_of([plain, transposed], 32) == [8, 1]


def test_strides_that_do_not_divide():
    """Check that a stride must divide: 4 does not divide 6, and 6 is one only if `4 * j` stays below it."""
    assert strides_of([access(6 * i + 4 * j, {i: 3, j: 2})], 18) == [6, 1]
    assert strides_of([access(6 * i + 4 * j, {i: 3, j: 3})], 24) == [1]


def test_overlapping_windows():
    """Check that overlapping windows (6 every 3) are no dimension, and rows are: an element has one address."""
    assert strides_of([access(40 * i + 3 * j + k, {i: 6, j: 12, k: 6})], 240) == [40, 1]
    assert strides_of([access(3 * j + k, {j: 12, k: 3})], 36) == [3, 1]


def test_expanded():
    """Check that a variable of stride 0 is in no subscript."""
    view = delinearise("buf0", [access(j, {i: 4, j: 8})], sympy.Integer(8), PROVER)
    assert list(view.subscripts.values()) == [[j]]


def test_symbolic_rows_and_columns():
    assert strides_of([access(8 * i + j, {i: s0, j: 8})], 8 * s0) == [8, 1]
    assert strides_of([access(s0 * i + j, {i: 8, j: s0})], 8 * s0) == [s0, 1]
    assert strides_of([access(s0 * s1 * i + s1 * j + k, {i: 4, j: s0, k: s1})], 4 * s0 * s1) == [s0 * s1, s1, 1]


def test_symbolic_offset():
    half = [access(2 * s0 * i + j + c, {i: 4, j: s0}) for c in (0, s0)]
    assert strides_of(half, 8 * s0)[0] == 2 * s0


def test_symbolic_flip():
    assert strides_of([access(s0 * i + s0 - 1 - j, {i: 4, j: s0})], 4 * s0) == [s0, 1]
    assert strides_of([access(s0 * s1 - 1 - s1 * i - j, {i: s0, j: s1})], s0 * s1) == [s1, 1]
    assert strides_of([access(8 * s0 - 1 - 8 * i - j, {i: s0, j: 8})], 8 * s0) == [8, 1]


def test_the_sign_of_a_stride_that_is_a_sum_of_products_was_not_known():
    """Check strides of tokens without the last of each sequence: `s0*s1 - s1` has the sign of its two factors."""
    shorter = sympy.expand((s0 - 1) * s1)
    assert strides_of([access(shorter * i + s1 * j + k, {i: 4, j: s0 - 1, k: s1})], 4 * shorter) == [shorter, s1, 1]
    flipped = (s0 - 1) * s1 * (4 - i) - 1 - s1 * j - k
    assert strides_of([access(flipped, {i: 4, j: s0 - 1, k: s1})], 4 * shorter) == [shorter, s1, 1]
    refused([access(shorter * i + s1 * j + k, {i: 4, j: s0, k: s1})], 4 * shorter)


def test_symbolic_padding():
    """Check that a row stride that is a sum of symbols is one stride."""
    padded = access(sympy.expand((s0 + 5) * i) + j, {i: s1, j: s0 + 5})
    assert strides_of([padded], sympy.expand((s0 + 5) * s1)) == [s0 + 5, 1]
    inner = access(sympy.expand((s0 + 5) * i) + j + 2, {i: s1, j: s0})
    assert strides_of([padded, inner], sympy.expand((s0 + 5) * s1)) == [s0 + 5, 1]


def test_a_short_last_row_is_no_row_where_another_is_whole():
    """Check that rows are no dimension if the last is short: a lane without a guard would read beyond the end."""
    assert strides_of([access(8 * i + j, {i: 3, j: 8}), access(24 + j, {j: 5})], 29) == [1]


@pytest.mark.parametrize(
    "index, extents, numel, sizes",
    [
        (24 * i + j, {i: 2, j: 8}, 32, [2, 8]),
        (24 * i + j, {i: 2, j: 8}, 48, [2, 24]),
        (60 * i + 6 * j + k, {i: 2, j: 10, k: 4}, 118, [2, 10, 4]),
        (60 * i + 6 * j + k, {i: 2, j: 3, k: 4}, 76, [2, 3, 4]),
    ],
)
def test_columns_of_a_wider_buffer_end_inside_of_its_last_row(index, extents, numel, sizes):
    """Check that columns of a wider buffer are rows of their own length.

    The last row was taken for one of the wider buffer, and read beyond its end.
    """
    view = delinearise("buf0", [access(index, extents)], sympy.sympify(numel), PROVER)
    assert view.sizes == sizes


@pytest.mark.parametrize(
    ("index", "extents", "numel", "sizes"),
    [
        (192 * (s1 * i + j) + 16 * k + r, {i: s0, j: s1, k: 4, r: 16}, 192 * s0 * s1 - 128, [s0, s1, 4, 16]),
        ((s1 + 5) * i + j, {i: s0, j: s1}, (s1 + 5) * s0 - 5, [s0, s1]),
        (4 * FloorDiv(s1, 2) * i + j, {i: s0, j: 2}, 4 * FloorDiv(s1, 2) * s0 - 2, [s0, 4 * FloorDiv(s1, 2) - 2]),
    ],
    ids=str,
)
def test_columns_of_a_wider_symbolic_buffer_had_no_number_of_rows(index, extents, numel, sizes):
    """Check that columns of a wider buffer with symbolic sizes have a number of rows.

    The last row of a batch is shorter than the stride, so the number of rows was not a whole one.
    """
    one = access(sympy.expand(index), extents)
    view = delinearise("buf0", [one], sympy.expand(numel), Prover(known_or_half, PROVER.hint))
    assert view.sizes == [sympy.expand(size) for size in sizes]
    for at in ({s0: 2, s1: 2}, {s0: 3, s1: 5}, {s0: 7, s1: 4}):
        enumerate_access(view, one, at)


def known_or_half(condition):
    """Return True if a condition holds, given that half of a size is one or more."""
    half = sympy.Symbol("half", integer=True, positive=True)
    return known(condition.replace(FloorDiv(s1, 2), half).subs(half, half + 1)) or known(condition)


def test_rows_may_not_end_before_the_last_symbolic_one():
    """Check that an access to a missing row, beyond the end of the buffer, is refused."""
    whole = {i: s0, j: s1, k: 16}
    assert refused([access(192 * (s1 * i + j) + k, whole)], 192 * s0 * s1 - 192) == Reason.subscript_out_of_bounds
    assert refused([access(192 * (s1 * i + j) + k, whole)], 192 * s0 * s1 - 177) == Reason.subscript_out_of_bounds


def test_unrelated_symbolic_strides_are_one_dimension():
    """Check that s0 and s1, of which none divides the other, make no rows: columns are not proven to stay in one."""
    assert refused([access(s0 * i + j, {i: s1, j: s1})], s0 * s1) == Reason.subscript_out_of_bounds


def test_smallest_symbolic_size():
    """Check that s0 >= 2 is used: one column beyond s0 - 1 is in bounds, and two beyond are not."""
    assert strides_of([access(s0 * i + 1, {i: 4})], 4 * s0) == [s0, 1]
    assert refused([access(s0 * i + 2, {i: 4})], 4 * s0) == Reason.subscript_out_of_bounds


@pytest.mark.parametrize(
    "index, extents, numel",
    [
        (8 * i + j, {i: 4, j: 8}, 24),
        (8 * i + j - 1, {i: 4, j: 8}, 32),
        (8 * i + j + 1, {i: 4, j: 8}, 32),
        (-j, {j: 8}, 8),
        (s0 * i + j, {i: 4, j: s0}, 3 * s0),
        (s0 * i + j + 1, {i: 4, j: s0}, 4 * s0),
        (s0 * i - j, {i: 4, j: s0}, 4 * s0),
    ],
)
def test_out_of_bounds_is_refused(index, extents, numel):
    assert refused([access(index, extents)], numel) == Reason.subscript_out_of_bounds


def test_floordiv_and_mod():
    """Check transposed blocks of a row; `j mod 8` has eight values wherever j ends."""
    index = 64 * i + 8 * ModularIndexing(j, 1, 8) + FloorDiv(j, 8)
    assert strides_of([access(index, {i: 4, j: 64})], 256) == [64, 8, 1]
    assert refused([access(index, {i: 4, j: 72})], 256) == Reason.subscript_out_of_bounds
    assert strides_of([access(ModularIndexing(j + 37, 1, 40), {j: 40})], 40) == [1]


def test_division_by_a_symbol_is_no_access_relation():
    assert refused([access(FloorDiv(j, s0), {j: s0 * 4})], 4) == Reason.subscript_out_of_bounds


@pytest.mark.parametrize("index", [i * j, i**2, sympy.Max(i, j), sympy.Abs(i - 3)])
def test_what_is_not_affine_is_refused(index):
    assert refused([access(index, {i: 4, j: 4})], 100) == Reason.non_affine_index


def test_guards_narrow_the_box():
    """Check a padded row: a load left of the store is in bounds only under a guard."""
    extents = {i: 4, j: 11}
    index = 8 * i + j - 2
    assert refused([access(index, extents)], 32) == Reason.subscript_out_of_bounds
    assert strides_of([access(index, extents, [j - 2, 9 - j])], 32) == [8, 1]
    assert refused([access(index, extents, [j - 1, 9 - j])], 32) == Reason.subscript_out_of_bounds
    assert strides_of([access(index, extents, [2 * j - 3, 18 - 2 * j])], 32) == [8, 1]
    assert refused([access(index, extents, [2 * j - 2, 18 - 2 * j])], 32) == Reason.subscript_out_of_bounds


def test_guards_on_windows_that_move_by_two():
    """Check windows of 3 that move by 2, of which the first begins in the padding, in both directions."""
    index, extents = 224 * i + 2 * j - 113, {i: 56, j: 56}
    assert strides_of([access(index, extents, [2 * i - 1, 2 * j - 1])], 112 * 112) == [224, 2, 1]
    assert refused([access(index, extents, [2 * j - 1])], 112 * 112) == Reason.subscript_out_of_bounds


def test_guards_on_sums():
    """Check that i + j >= 3 bounds j from below by 3 less i's largest value."""
    one = access(j, {i: 3, j: 8}, [i + j - 3])
    assert one.ranges[j] == (1, 7)
    assert one.ranges[i] == (0, 2)


def test_guards_on_subscripts():
    """Check windows of 2 over 3 rows: only a guard on a sum keeps the second row of the last window in bounds."""
    rows, index, extents = access(8 * i + k, {i: 3, k: 8}), 8 * (2 * i + j) + k, {i: 2, j: 2, k: 8}
    assert strides_of([rows, access(index, extents, [2 - 2 * i - j])], 24) == [8, 1]
    assert strides_of([rows, access(index - 8, extents, [2 * i + j - 1])], 24) == [8, 1]
    for guards in ([], [3 - 2 * i - j], [4 - 4 * i - j]):
        assert refused([rows, access(index, extents, guards)], 24) == Reason.subscript_out_of_bounds


@pytest.mark.parametrize(
    ("step", "guard"), [(-8, lambda token: token - 1), (8, lambda token: 5 - token), (-16, lambda token: token - 2)]
)
def test_a_shift_inside_of_sequences_stays_inside_of_all_tokens(step, guard):
    """Check that a guard on the place in a sequence of 7 tokens keeps the index over all 42 tokens in bounds.

    The parts of the sum have 3 tokens each, so the place is a remainder of parts and tokens.
    """
    extents, inside = {i: 14, j: 3, k: 8}, ModularIndexing(3 * i + j, 1, 7)
    rows, shifted = access(24 * i + 8 * j + k, extents), 24 * i + 8 * j + k + step
    assert strides_of([rows, access(shifted, extents, [guard(inside)])], 42 * 8) == [8, 1]
    for guards in ([], [guard(inside) + 1], [-guard(inside)]):
        assert refused([rows, access(shifted, extents, guards)], 42 * 8) == Reason.subscript_out_of_bounds


def test_a_shift_inside_of_a_symbolic_number_of_sequences():
    extents, inside = {i: s0, j: 7, k: 8}, ModularIndexing(7 * i + j, 1, 7)
    rows = access(56 * i + 8 * j + k, extents)
    for step, guard in ((-8, inside - 1), (8, 5 - inside)):
        shifted = access(56 * i + 8 * j + k + step, extents, [guard])
        assert strides_of([rows, shifted], 56 * s0)[-2:] == [8, 1]


def test_padded_strides():
    """Check squares of 3 x 3 every 10 elements: rows of 3 are found where guarded windows need them."""
    squares, windows = {i: 2, j: 3, k: 3}, {i: 2, j: 2, k: 2, r: 3}
    plain, index = access(10 * i + 3 * j + k, squares), 10 * i + 3 * (2 * j + k) + r
    guarded = access(index, windows, [2 - 2 * j - k])
    assert strides_of([plain], 19) == [10, 1]
    assert strides_of([plain, guarded], 19) == [10, 3, 1]
    assert refused([plain, access(index, windows)], 19) == Reason.subscript_out_of_bounds
    view = delinearise("buf0", [plain, guarded], sympy.Integer(19), PROVER)
    assert view.sizes == [2, 3, 3] and view.subscripts[guarded] == [i, 2 * j + k, r]


def test_dead_access_is_nowhere():
    """Check that an access under a guard that no iteration passes gets subscripts 0, and others keep theirs."""
    live, dead = access(8 * i + j, {i: 4, j: 8}), access(8 * i + 3 * j + 99, {i: 4, j: 8}, [j - 5, 4 - j])
    view = delinearise("buf0", [live, dead], sympy.Integer(32), PROVER)
    assert view.subscripts[live] == [i, j] and view.subscripts[dead] == [0, 0]


def test_one_index_under_two_guards_is_two_accesses():
    """Check that an index under two guards is two accesses: what one guard proves does not hold for the other."""
    guarded, free = access(8 * i + j - 4, {i: 4, j: 12}, [j - 4]), access(8 * i + j - 4, {i: 4, j: 4}, [i - 1])
    view = delinearise("buf0", [guarded, free], sympy.Integer(32), PROVER)
    assert view.subscripts[guarded] == [i, j - 4]
    assert view.subscripts[free] == [i - 1, j + 4]
    for one in (guarded, free):
        enumerate_access(view, one, {})


def test_every_pair_of_small_accesses():
    """Check exhaustively that two small accesses have equal addresses exactly where they have equal subscripts."""
    forms = [4 * i + j, 4 * j + i, 8 * i + 2 * j + 1, 15 - 4 * i - j, 6 * i + j, 2 * i + j + 3, 4 * i - j + 3]
    for first, second in itertools.combinations_with_replacement(forms, 2):
        accesses = [access(first, {i: 2, j: 4}), access(second, {i: 2, j: 3})]
        view = delinearise("buf0", accesses, sympy.Integer(64), PROVER)
        addresses: dict[Any, Any] = {}
        for one, columns in zip(accesses, (4, 3), strict=True):
            for at in ({i: a, j: b} for a in range(2) for b in range(columns)):
                subscripts = tuple(s.subs(at) for s in view.subscripts[one])
                assert addresses.setdefault(subscripts, one.index.subs(at)) == one.index.subs(at)
        assert len(set(addresses.values())) == len(addresses)


def test_bounds():
    ranges = {i: (sympy.Integer(1), sympy.Integer(4)), j: (sympy.Integer(0), s0 - 1)}
    assert bounds(3 * i - 2 * j + 5, ranges) == (10 - 2 * s0, 17)
    assert bounds(FloorDiv(i + 3, 2), ranges) == (2, 3)
    assert bounds((s0 - s1) * i, ranges) is None
    assert bounds(k, ranges) is None


@pytest.mark.parametrize(
    "value, divisor, quotient",
    [
        (12, 4, 3),
        (-12, 4, -3),
        (12, 5, None),
        (s0 * s1, s0, s1),
        (6 * s0, 3, 2 * s0),
        (5 * s0, 3, None),
        (s0, s1, None),
        (s0, 1, s0),
        (sympy.Rational(1, 2) * s0, 1, None),
        (s0 * s1 + 5 * s1, s0 + 5, s1),
        (4 * FloorDiv(s0, 2), 4, FloorDiv(s0, 2)),
    ],
)
def test_exact_quotient(value, divisor, quotient):
    assert exact_quotient(sympy.sympify(value), sympy.sympify(divisor)) == quotient


def test_divided_constraint_admits_the_same_iterations():
    """Check by enumeration, for small strides and rows, that a divided constraint admits the same iterations."""
    stride = sympy.Symbol("t", integer=True, positive=True)
    p, j = iteration_variable(0), iteration_variable(1)
    ranges = {p: (sympy.Integer(0), sympy.Integer(3)), j: (sympy.Integer(0), stride - 1)}

    def known(condition):
        return all(condition.subs({stride: t}) for t in range(1, 9))

    for expr in (p * stride + j - stride, stride - 1 - p * stride - j, 2 * stride - j - p * stride - 1):
        divided = divide_constraint(expr, ranges, known)
        assert not divided.has(stride)
        for t in range(1, 6):
            for at in ({p: a, j: b, stride: t} for a in range(4) for b in range(t)):
                assert (expr.subs(at) >= 0) == (divided.subs(at) >= 0)
    undecided = p * stride + 2 * j - stride
    assert divide_constraint(undecided, ranges, known) == undecided


@pytest.mark.parametrize(
    ("one", "other", "proven"),
    [
        (16 * FloorDiv(s0, 16) - 1, s0 - 1, True),
        (s0 - 15, 16 * FloorDiv(s0, 16), True),
        (s1 * FloorDiv(s0, 16), s0 * s1, True),
        (s0 - 14, 16 * FloorDiv(s0, 16), False),
        (17 * FloorDiv(s0, 16), s0, False),
        ((s0 - s1) * FloorDiv(s0, 16), s0 * s0, False),
    ],
)
def test_what_a_quotient_leaves_over_was_not_known(one, other, proven):
    """Check that a quotient times its divisor is known not to be above the size, nor as far below as the divisor."""
    assert PROVER.less_equal(one, other) is proven
