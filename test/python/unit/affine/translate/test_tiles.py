"""Test loops over the blocks of a tile, of which something is reduced along several axes."""

from __future__ import annotations

import sympy
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

from bridge.affine.translate.access import Prover
from bridge.affine.translate.loops import NodeLoops
from bridge.affine.translate.tiles import loops_of_tiles

P = sympy.symbols("p0 p1 p2", integer=True, nonnegative=True)
P0, P1, P2 = P


def node(iteration, reduction, stored, **indices):
    """Return a node's loops; indices: of each buffer that it accesses."""
    extents = [[sympy.sympify(extent) for extent in part] for part in (iteration, reduction)]
    variables = list(P[: len(iteration) + len(reduction)])
    return NodeLoops(extents[0], extents[1], 0, variables=variables, indices=list(indices.items()), stored={stored})


def along_rows(length, rows=64):
    """Return nodes of rows of 96 numbers: the largest of each block, and the numbers by it."""
    blocks = 96 // length
    element, block = 96 * P0 + length * P1 + P2, blocks * P0 + P1
    return [
        node([rows, blocks], [length], "r", x=element, r=block),
        node([rows, blocks, length], [], "y", x=element, r=block, y=element),
    ]


def along_columns(length, rows=64):
    """Return nodes of columns of such rows: the largest of each block, and the numbers by it, transposed."""
    element, block = 96 * length * P0 + P1 + 96 * P2, 96 * P0 + P1
    return [
        node([rows / sympy.Integer(length), 96], [length], "c", x=element, c=block),
        node([rows, 96], [], "z", x=96 * P0 + P1, c=96 * FloorDiv(P0, length) + P1, z=rows * P1 + P0),
    ]


#: A number of blocks.
N = sympy.Symbol("n", integer=True, positive=True)


def known(condition):
    """Return True if a condition holds for n >= 1: a polynomial of n - 1 has nonnegative coefficients."""
    if condition in (sympy.true, sympy.false):
        return bool(condition)
    return all(c >= 0 for c in sympy.expand(condition.lhs.subs(N, N + 1)).as_coefficients_dict().values())


PROVER = Prover(known, lambda size: int(size.subs(N, 100)))


def loops(nodes):
    found = loops_of_tiles(nodes, PROVER)
    return None if found is None else [(own.factors, own.order) for own in found]


def test_rows_or_columns_of_a_block_and_then_what_is_reduced():
    """Check that loops are rows or columns of 2 x 3 blocks, and then rows where rows are reduced, or columns."""
    assert loops([*along_rows(32), *along_columns(32)]) == [
        ([[2, 32], [3], [32]], [0, 2, 1]),
        ([[2, 32], [3], [32]], [0, 2, 1, 3]),
        ([[2], [3, 32], [32]], [0, 1, 2]),
        ([[2, 32], [3, 32]], [0, 2, 3, 1]),
    ]


def test_blocks_are_square():
    """Check that blocks are square (32 x 32); along rows, each has two segments of 16."""
    rows, by_rows, columns, by_columns = loops([*along_rows(16), *along_columns(32)])
    assert rows == ([[2, 2, 16], [3, 2], [16]], [0, 3, 1, 2, 4])
    assert by_rows == ([[2, 2, 16], [3, 2], [16]], [0, 3, 1, 2, 4, 5])
    assert columns == ([[2], [3, 2, 16], [32]], [0, 1, 2, 3])
    assert by_columns == ([[2, 32], [3, 2, 16]], [0, 2, 3, 4, 1])


def test_a_number_of_rows_that_is_a_symbol():
    rows, _, columns, by_columns = loops([*along_rows(32, 32 * N), *along_columns(32, 32 * N)])
    assert rows == ([[N, 32], [3], [32]], [0, 2, 1])
    assert columns == ([[N], [3, 32], [32]], [0, 1, 2])
    assert by_columns == ([[N, 32], [3, 32]], [0, 2, 3, 1])


def test_a_copy_with_columns_of_symbolic_length():
    """Check a copy with columns of symbolic length: its readers, in two loops or one, are cut where blocks end."""
    nodes = [*along_rows(32, 32 * N), *along_columns(32, 32 * N)]
    reader = node([96, 32 * N], [], "w", z=32 * N * P0 + ModularIndexing(P1, 1, 32 * N), w=32 * N * P0 + P1)
    flat = node([96 * 32 * N], [], "v", z=P0, v=96 * ModularIndexing(P0, 1, 32 * N) + FloorDiv(P0, 32 * N))
    _, _, _, _, by_reader, by_flat = loops([*nodes, reader, flat])
    assert by_reader == ([[3, 32], [N, 32]], [2, 0, 1, 3])
    assert by_flat == ([[3, 32, N, 32]], [2, 0, 1, 3])


def test_one_loop_over_rows_of_symbolic_number():
    """Check one loop over a symbolic number of rows that stores columns: its index multiplies a remainder."""
    transposed = 32 * N * ModularIndexing(P0, 1, 96) + FloorDiv(P0, 96)
    flat = node([32 * N * 96], [], "w", x=P0, c=96 * FloorDiv(P0, 96 * 32) + ModularIndexing(P0, 1, 96), w=transposed)
    assert loops([*along_rows(32, 32 * N), *along_columns(32, 32 * N), flat])[-1] == ([[N, 32, 3, 32]], [0, 2, 3, 1])


def test_one_loop_over_all_elements():
    """Check one loop over all elements, whose index tells rows and columns by divisions."""
    whole = ModularIndexing(P0, 1, 96)
    flat = node([64 * 96], [], "w", x=P0, c=96 * FloorDiv(P0, 96 * 32) + whole, w=P0)
    assert loops([*along_rows(32), *along_columns(32), flat])[-1] == ([[2, 32, 3, 32]], [0, 2, 3, 1])


def test_nothing_is_changed_where_blocks_have_one_axis():
    assert loops(along_rows(32)) is None
    assert loops([*along_rows(32), *along_rows(32)]) is None


def test_nothing_is_changed_where_whole_rows_are_reduced_as_well():
    whole = node([64], [96], "s", x=96 * P0 + P1, s=P0)
    assert loops([*along_rows(32), *along_columns(32), whole]) is None


def test_nothing_is_changed_where_a_node_is_over_something_else():
    other = node([7], [], "o", r=P0, o=P0)
    assert loops([*along_rows(32), *along_columns(32), other]) is None


def test_nothing_is_changed_where_a_block_is_too_large():
    """Check that blocks of 1024 x 1024, which fit in no registers, change nothing."""
    assert loops([*along_rows(32, 2048), *along_columns(128, 2048)]) is not None
    assert loops([*along_rows(32, 2048), *along_columns(1024, 2048)]) is None
