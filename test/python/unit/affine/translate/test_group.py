"""Groups of nodes as one function."""

from __future__ import annotations

import pytest
import sympy
import torch
from torch._inductor.virtualized import V
from translated import ROWS

from bridge.affine.translate.group import GroupTarget, NodeSource, make_prover, trace_group, translate_group

pytestmark = pytest.mark.usefixtures("graph")


def test_a_node_without_iteration_variables_gives_all_a_unit_loop():
    """Bands are shared loop by loop, so every nest of the group needs the loop that one of them lacks."""

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
