"""Test the step that gives kernels of rows the columns: what stands in the report, and what is undone."""

from __future__ import annotations

import functools
from unittest import mock

import torch
from functions import norm

import bridge
from bridge import offline
from bridge.backend import bridge as backend
from bridge.horizontal.column_sums import Tile
from bridge.reasons import Reason, Unsupported
from bridge.scheduling import columns as step
from bridge.scheduling.group_log import GroupLog


def sums(x, g, w):
    h = norm(x, w)
    return h, (h * g).sum(0), x.sum(0)


def compiled(**options):
    torch._dynamo.reset()
    inputs = torch.randn(2048, 4096), torch.randn(2048, 4096), torch.randn(4096)
    compile_fx = functools.partial(backend, options={"strict": True, **options})
    return offline.compile_for_gpu(sums, inputs, compile_fx=compile_fx)


def test_the_report_counts_both_kernels():
    """Check that the report counts both kernels: of four, one has the rows, and one adds up all sums."""
    result = compiled(force_fusion=True)
    report = bridge.report()
    assert report.kernels_after == result.n_kernels == 2
    assert sum(group.kernels_after for group in report.groups) == 2
    assert sum(group.kernels_before for group in report.groups) == report.kernels_before > 2
    assert any("partial sums" in line for group in report.groups for line in group.decisions)


def test_what_is_refused_at_the_end_leaves_inductors_kernels(monkeypatch):
    """Check that a refusal at the end leaves Inductor's kernels: loops, buffers and blocks are as before.

    The sums share a launch, as they are to.
    """

    def refuse(*_):
        raise Unsupported(Reason.not_profitable, "for the test")

    monkeypatch.setattr(step, "_replaced", refuse)
    result = compiled(force_fusion=True)
    assert result.n_kernels == 3 and "workspace_0" not in result.code
    assert "'XBLOCK': 16" not in result.code
    assert any("for the test" in detail for group in bridge.report().groups for _, detail in group.apart)


def test_what_keeps_its_rows_has_no_loop_over_parts(monkeypatch):
    """Check that a kernel that keeps rows is refused where it has no loop over a symbolic number of parts."""
    monkeypatch.setattr(step.codegen, "keeps_rows", lambda kernel: True)
    assert compiled(force_fusion=True).n_kernels == 2
    torch._dynamo.reset()
    inputs = torch.empty(2048, 4096), torch.empty(2048, 4096), torch.empty(4096)
    for tensor in inputs[:2]:
        torch._dynamo.mark_dynamic(tensor, 0)
    compile_fx = functools.partial(backend, options={"strict": True, "force_fusion": True})
    result = offline.compile_for_gpu(sums, inputs, compile_fx=compile_fx, dynamic=None)
    assert result.n_kernels > 2 and "workspace_0" not in result.code
    assert any("has no loop" in detail for group in bridge.report().groups for _, detail in group.apart)


def test_the_workspace_counts_for_the_peak():
    assert compiled().n_kernels > 2
    assert any("bytes of memory more" in detail for group in bridge.report().groups for _, detail in group.apart)


def beside_a_wide_product(x, g, w, wide):
    """Compute sums beside a wide product, which needs the most memory when the rows are done."""
    h, *columns = sums(x, g, w)
    return h, *columns, torch.sin(wide) @ wide.T


def test_where_there_is_room_nobody_has_to_ask():
    torch._dynamo.reset()
    inputs = *[torch.randn(2048, 4096)] * 2, torch.randn(4096), torch.empty(2048, 1 << 15)
    result = offline.compile_for_gpu(beside_a_wide_product, inputs, compile_fx=functools.partial(backend, options={}))
    assert result.n_kernels == 3 and "workspace_0" in result.code, bridge.report()


def test_a_tile_that_was_refused_is_not_tried_again(monkeypatch):
    """Check that a refused tile is not tried again, and that each kernel that finds it is told why."""
    tried, told = [], []

    def refuse(schedule, tile, room):
        tried.append(step._names(tile.kernels))
        raise Unsupported(Reason.not_profitable, "for the test")

    monkeypatch.setattr(step, "_change_of", refuse)
    monkeypatch.setattr(step, "_seeds", lambda *arguments, seeds=step._seeds: 2 * seeds(*arguments))
    monkeypatch.setattr(GroupLog, "keep_apart", lambda log, reason, detail: told.append(detail))
    compiled(force_fusion=True)
    assert tried and len(tried) == len(set(tried))
    assert sum("for the test" in detail for detail in told) > len(tried)


def test_of_a_tile_those_kernels_are_known_that_may_get_other_loops():
    first, second, other = (mock.Mock() for _ in range(3))
    tile = Tile(8, 16, [first, second], [], [])
    assert step.Terms(None).of(tile) == tile
    assert step.Terms(None, {second: 3, other: 5}).of(tile).alone == ((second, 3),)
