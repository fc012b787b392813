"""Test what a report says of a whole graph, in the groups and outside of them."""

from __future__ import annotations

import pytest
import torch
from emitted_claims import contradictions

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend

ROWS, COLUMNS = 64, 1024
MATRIX = ROWS * COLUMNS * 4


def function(x, w, y):
    """Compute a norm and a gate, which become one kernel; a library call; and a kernel that no group has."""
    scaled = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    gate, up = scaled.chunk(2, dim=-1)
    return torch.sigmoid(gate) * up, y @ w, torch.cumsum(y, -1) + 1


@pytest.fixture(scope="module")
def report():
    torch._dynamo.reset()
    inputs = [torch.randn(ROWS, COLUMNS), torch.randn(COLUMNS, 32), torch.randn(ROWS, COLUMNS)]
    offline.compile_for_gpu(function, inputs, compile_fx=bridge_backend)
    return bridge.report()


def test_totals_are_those_of_groups_and_of_what_no_group_has(report):
    assert contradictions(report) == []
    (group,) = report.fused
    assert (group.bytes_before, group.bytes_after) == (2 * MATRIX + MATRIX // 2 + 2 * ROWS * 4, MATRIX + MATRIX // 2)
    scan = report.bytes_after - group.bytes_after
    assert scan == report.bytes_before - group.bytes_before == 2 * MATRIX


def test_the_rest_of_the_opening(report):
    assert report.library_calls == 1 and report.device == "sm_90"
    assert report.peak_before >= report.peak_after >= MATRIX
    assert report.compile_seconds > report.total_seconds


def test_the_peak_before_is_that_of_the_loops_before(compiler):
    """Check that the peak before is that of the loops before.

    One kernel gets other loops; with these it needed 1.5 KB, and the report said that the peak rose.
    """

    def layer(x, w, g):
        scaled = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * g
        halves = (gated(scaled @ w), gated(scaled))
        return torch.cat(halves, -1) + x

    def gated(x):
        gate, up = x.chunk(2, -1)
        return torch.nn.functional.silu(gate) * up

    compiler(layer, backend="bridge")(torch.randn(6, 32), torch.randn(32, 32), torch.randn(32))
    report = bridge.report()
    assert report.fused and report.peak_before >= report.peak_after, report


def test_nodes_have_the_users_names(report):
    (group,) = report.fused
    named = [report.names[0, node] for node in group.nodes]
    assert "mean" in named[0].operations and "sigmoid" in named[-1].operations
    assert all(name.place[0] == __file__ for name in named)
    assert any(name.operations == ("cumsum",) or "cumsum" in name.operations for name in report.names.values())
    assert any("matmul" in name.operations for name in report.names.values()), "a library call has a name, too"
