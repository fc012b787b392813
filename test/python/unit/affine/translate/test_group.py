"""Test groups of nodes as one function."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import sympy
import torch
from torch._inductor.loop_body import MemoryUsageType
from torch._inductor.virtualized import V
from torch.utils._sympy.functions import FloorDiv, Max, ModularIndexing
from translated import ROWS

from bridge.affine.translate.group import (
    GroupTarget,
    NodeSource,
    make_prover,
    sizes_as_multiples,
    trace_group,
    translate_group,
    with_shared_loops,
)
from bridge.reasons import Unsupported

pytestmark = pytest.mark.usefixtures("graph")


def test_a_node_without_iteration_variables_gives_all_a_unit_loop():
    """Check that a node without iteration variables gives every nest of its group a unit loop, as bands share loops."""

    def rows(indices, _):
        ops = V.get_ops_handler()
        ops.store("out", indices[0], ops.load("in0", indices[0]))

    def total(_, reduce_indices):
        ops = V.get_ops_handler()
        value = ops.reduction(torch.float32, torch.float32, "sum", ops.load("out", reduce_indices[0]))
        ops.store_reduction("in1", sympy.Integer(0), value)

    sources = [NodeSource("op0", rows, ([ROWS], []), 0), NodeSource("op1", total, ([], [ROWS]), 0)]
    target = GroupTarget(lambda name: torch.float32, lambda name: ROWS, make_prover(), True)
    translation = translate_group("group", sources, trace_group(sources), target)
    entry = translation.module.body.operations[0].regions[0].blocks[0]
    nests = [op for op in entry.operations if op.operation.name == "affine.for"]
    assert [str(nest).splitlines()[0].endswith("= 0 to 1 {") for nest in nests] == [True, True]
    without = translate_group("group", sources[:1], trace_group(sources[:1]), target)
    assert "to 1 {" not in str(without.module)


def test_a_remainder_by_a_symbol_hid_how_loops_step():
    """Check that loops over pairs are cut into 8 for each block of 16 of another node, whose rows are one loop.

    A remainder by a symbol hid how the loops step.
    """
    count = sympy.Symbol("s0", integer=True, positive=True)
    rows, element = sympy.symbols("p0 p1", integer=True, nonnegative=True)

    def body(index, *variables):
        extents = dict(zip((rows, element), variables, strict=True))
        entry = SimpleNamespace(buffer_name="x", index_name="index0")
        usage = {MemoryUsageType.LOAD: [entry]}
        return SimpleNamespace(
            iter_vars=list(extents), var_ranges=extents, indexing_exprs={"index0": index}, memory_usage=usage
        )

    sixteen, pairs = sympy.Integer(16), sympy.Integer(2048)
    blocks = body(ModularIndexing(16 * rows + element, 1, 4096 * count), 256 * count, sixteen)
    halves = body(4096 * rows + 2 * element, count, pairs)
    sources = [
        NodeSource("op0", blocks, ([256 * count, sixteen], []), 0),
        NodeSource("op1", halves, ([count, pairs], []), 1),
    ]
    for _, choice in with_shared_loops(sources):
        assert choice.loops == [[count], [256, 8]]


def refused_kernels(rows_as_seen, reason):
    """Return the kernels blamed for a batch's rows in tokens, and parts of all of its rows; rows_as_seen: by parts."""
    count, tokens = (sympy.Symbol(name, integer=True, positive=True) for name in ("s0", "s1"))
    part = FloorDiv(count * tokens + 8, 9)

    def rows(indices, _):
        ops = V.get_ops_handler()
        ops.store("out", tokens * indices[0] + indices[1], ops.load("in0", tokens * indices[0] + indices[1]))

    def parts(indices, reduced):
        ops = V.get_ops_handler()
        value = rows_as_seen(ops, indices[0] * part + reduced[0], count * tokens)
        ops.store_reduction("in1", indices[0], ops.reduction(torch.float32, torch.float32, "sum", value))

    sources = [
        NodeSource("op0", rows, ([count, tokens], []), 0),
        NodeSource("op1", parts, ([sympy.Integer(9)], [part]), 1),
    ]
    blamed: list[int] = []
    elements = {"in1": sympy.Integer(9)}
    target = GroupTarget(
        lambda name: torch.float32, lambda name: elements.get(name, count * tokens), make_prover(), True
    )
    with pytest.raises(Unsupported, match=reason):
        translate_group("group", sources, trace_group(sources), target, blamed.append)
    return blamed


def test_rows_were_blamed_for_the_divisions_of_sums_of_columns():
    """Check that a division by symbols in sums of columns is blamed on the sums, not on the rows.

    Parts of all rows of a batch divide by its symbols, and no memref with rows and tokens has their elements.
    """

    def remainder(ops, row, count):
        return ops.load("out", ModularIndexing(row, 1, count))

    assert refused_kernels(remainder, "divides by what is no positive number") == [1]


def test_rows_were_blamed_for_the_strides_of_sums_of_columns():
    """Check that parts which are as many rows as a symbol says are blamed, and not the rows of a batch's tokens.

    Of a remainder under a mask that says what it does nothing but the parts' stride is left, and a memref of all rows.
    """

    def masked(ops, row, count):
        inside = ops.lt(ops.index_expr(row, torch.int64), ops.index_expr(count, torch.int64))
        return ops.masked(inside, lambda: ops.load("out", row), 0.0)

    assert refused_kernels(masked, "symbolic stride") == [1]


@pytest.mark.parametrize(("other", "replaced"), [(([], []), True), (([ROWS], []), False)])
def test_a_stride_is_a_size_only_where_none_of_its_nodes_runs_without_it(other, replaced):
    """Check that a node with `Max(1, n)` in its index and other loops keeps it; one without does not matter."""
    n, row = (sympy.Symbol(name, integer=True, nonnegative=True) for name in ("n", "p0"))

    def source(index, sizes):
        body = SimpleNamespace(indexing_exprs={"index0": index}, var_ranges={row: ROWS})
        return NodeSource("op0", body, sizes, 0)

    stride = Max(1, n)
    nodes = [source(stride * row, ([ROWS, n], [])), source(stride if other[0] else sympy.Integer(0), other)]
    assert (sizes_as_multiples(nodes).rewrite(stride) != stride) is replaced
