"""What becomes of a schedule: groups are fused stage by stage, and all else is as it was."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from offline_functions import norm_inputs
from rfc import swiglu_norm

import bridge
from bridge import offline
from bridge.install import enabled
from bridge.options import Options
from bridge.reasons import Reason, Refusal, Unsupported
from bridge.reports import Report
from bridge.scheduling.fuse import fuse_schedule


def foreign(name, **members):
    """Return a kernel of a class that is none of Inductor's kernels of loops."""
    kernel = SimpleNamespace(
        get_name=lambda: name, unmet_dependencies=[], get_buffer_names=lambda: [name], get_device=lambda: None
    )
    vars(kernel).update(members)
    return kernel


def fail():
    raise ZeroDivisionError("a bug")


def test_an_empty_schedule_stays_empty():
    report = Report()
    assert fuse_schedule([], Options(strict=True), report) == []
    assert (report.groups, report.refusals, report.counters) == ([], [], {"groups_seen": 0})


def test_kernels_that_are_no_loops_are_left_alone_with_the_reason():
    schedule, report = [foreign("extern0"), foreign("extern1")], Report()
    options = Options(force_fusion=True, unfused_rows=False)
    result = fuse_schedule(schedule, options, report)
    assert [kernel is before for kernel, before in zip(result, schedule, strict=True)] == [True, True]
    assert report.refusals == [
        Refusal([name], Reason.node_not_loops, "not a kernel of plain loops that it owns")
        for name in ("extern0", "extern1")
    ]


@pytest.mark.expects_internal_error
def test_a_bug_is_a_refusal_and_an_error_in_strict_mode():
    schedule = [foreign("extern0", get_buffer_names=fail)]
    with pytest.raises(ZeroDivisionError):
        fuse_schedule(schedule, Options(strict=True, force_fusion=True), Report())
    report = Report()
    assert fuse_schedule(schedule, Options(force_fusion=True), report) == schedule
    assert Refusal([], Reason.internal_error, "ZeroDivisionError: a bug") in report.refusals


def test_a_group_of_two_kernels_becomes_one_after_every_stage():
    offline.compile_for_gpu(swiglu_norm, norm_inputs(), context=enabled())
    report = bridge.report()
    (group,) = report.groups
    assert (group.fused, group.kernels_before, group.kernels_after) == (True, 2, 1)
    assert {"translate", "lift", "replace", "horizontal"} <= group.seconds.keys()
    assert (report.counters["groups_seen"], report.counters["groups_fused"]) == (1, 1)


def refuse_tiles(*_):
    raise Unsupported(Reason.not_profitable, "blocks are too large")


def test_a_group_is_fused_in_rows_where_blocks_of_a_tile_are_refused(monkeypatch):
    monkeypatch.setattr("bridge.scheduling.fuse.translate_in_tiles", refuse_tiles)
    offline.compile_for_gpu(swiglu_norm, norm_inputs(), context=enabled())
    (group,) = bridge.report().groups
    assert (group.fused, group.kernels_after) == (True, 1)
    assert "not in blocks of a tile [not_profitable]: blocks are too large" in group.decisions
