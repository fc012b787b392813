"""A claim is what was emitted: the report's kernels are those of the wrapper."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import rows, sample
from emitted_claims import loop_nests, wrong_claims
from torch._inductor.utils import run_and_get_code

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.diagnostics.recording import recorded
from bridge.inductor import cpp
from bridge.lowering.lift import commit

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from patterns import TESTED


@pytest.mark.one_in(2)
@pytest.mark.parametrize("pattern", TESTED, ids=lambda pattern: pattern.name)
def test_triton(pattern):
    inputs = pattern.make(None, torch.bfloat16, "cpu", small=True)
    with recorded() as recording:
        result = offline.compile_for_gpu(pattern.function, inputs, compile_fx=bridge_backend, dynamic=False)
    assert wrong_claims(bridge.report(), [graph.code for graph in result.graphs], recording.kernels) == []


def test_cpp(compiler):
    with recorded() as recording:
        _, codes = run_and_get_code(compiler(rows, backend="bridge"), sample())
    assert wrong_claims(bridge.report(), codes, recording.kernels) == []
    assert bridge.report().kernels_after == 1


def sum_and_product(x, y):
    """A sum of planes, whose loops have no vectors, and a product with each of its rows, which has them in one."""
    return (x.sum(dim=-1) + 1) @ y


def planes(size):
    apart = torch.empty_strided([size, size, 30], [30 * size + 300, 30, 1]).normal_()
    return [apart, torch.randn(size, size)]


@pytest.mark.parametrize("size", [20, 32])
def test_cpp_loops_that_come_apart_are_not_claimed(size, compiler):
    """Inductor's C++ code generator gives up on common loops where it splits one of them for one member only."""
    _, (inductors,) = run_and_get_code(compiler(sum_and_product, backend="inductor"), *planes(size))
    torch._dynamo.reset()
    with recorded() as recording:
        _, (code,) = run_and_get_code(compiler(sum_and_product, backend="bridge"), *planes(size))
    report = bridge.report()
    assert loop_nests(code) == loop_nests(inductors) == report.kernels_before == report.kernels_after == 2
    assert [(group.fused, group.reason) for group in report.groups] == [(False, bridge.Reason.not_liftable)]
    assert "own loops" in report.groups[0].detail and wrong_claims(report, [], recording.kernels)[1:] == []
    assert _cpp_functions(code) == _cpp_functions(inductors)


def _cpp_functions(code):
    return re.findall(r"^    \{\n.*?^    \}\n", code, re.MULTILINE | re.DOTALL)


def test_cpp_trial_leaves_no_trace(compiler, monkeypatch):
    """Where the loops stay together, the code is that of a compilation that did not try."""
    codes, tried = [], []

    def tries(kernel):
        tried.append(hasattr(kernel, "get_outer_nodes"))
        return cpp.comes_apart(kernel)

    for apart in (tries, lambda kernel: False):
        monkeypatch.setattr(commit, "comes_apart", apart)
        torch._dynamo.reset()
        _, (code,) = run_and_get_code(compiler(rows, backend="bridge"), sample())
        codes.append(code.partition("\n")[2])  # below the number of the graph
    assert loop_nests(code) == bridge.report().kernels_after == len(bridge.report().fused) == 1
    assert tried == [True] and codes[0] == codes[1]


def test_a_wrong_claim_is_found(compiler):
    _, codes = run_and_get_code(compiler(rows, backend="bridge"), sample())
    claimed = replace(bridge.report(), kernels_after=2)
    assert len(wrong_claims(claimed, codes)) == 2


def test_loops_that_change_without_a_kernel_less_are_not_called_fused():
    entry = bridge.GroupReport("group0", ["op0"], 1, 1, fused=True)
    report = bridge.Report(groups=[entry], graphs=1, kernels_before=1, kernels_after=1)
    assert "fused, 1 -> 1" not in str(report)
    assert "other loops, 1 kernel as before" in str(report)
