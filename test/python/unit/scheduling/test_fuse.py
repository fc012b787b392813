"""Check what becomes of a schedule: groups are fused stage by stage, and all else is as it was."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import pytest
import torch
from offline_functions import norm_inputs
from rfc import swiglu_norm
from torch._inductor import memory
from torch.nn import functional as F

import bridge
from bridge import offline
from bridge.inductor.memory import peak_bytes
from bridge.inductor.patches import replace_next_call
from bridge.install import enabled
from bridge.options import Options
from bridge.reasons import Reason, Refusal, Unsupported
from bridge.reports import Report
from bridge.scheduling import fuse
from bridge.scheduling.fuse import fuse_schedule


def foreign(name, **members):
    """Return a kernel of a class that is none of Inductor's kernels of loops."""
    names = {"get_buffer_names": lambda: [name], "get_operation_names": lambda: {name}}
    kernel = SimpleNamespace(get_name=lambda: name, unmet_dependencies=[], get_device=lambda: None, **names)
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
        Refusal([name], Reason.extern_kernel, "not a kernel of plain loops that it owns")
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


def lagged(x):
    sums = x.sum(-1, keepdim=True)
    gate, _ = torch.softmax(x, -1).chunk(2, -1)
    return gate * x.chunk(2, -1)[1], x * (sums + sums.roll(1, 0))


def test_a_group_that_is_fused_in_part_says_why_the_rest_stays_apart():
    """Check that a group that is fused in part says why the rest stays apart, from the remarks of the passes.

    Its list of what stays apart was empty, as no step had refused it.
    """
    offline.compile_for_gpu(lagged, (torch.randn(64, 1024),), context=enabled())
    (group,) = bridge.report().groups
    assert (group.fused, group.kernels_before, group.kernels_after) == (True, 3, 2)
    ((reason, detail),) = group.apart
    assert reason is Reason.loop_carried_dependence and group.remarks[-1][1] in detail


def refuse_tiles(*_):
    raise Unsupported(Reason.not_profitable, "blocks are too large")


def test_a_group_is_fused_in_rows_where_blocks_of_a_tile_are_refused(monkeypatch):
    monkeypatch.setattr("bridge.scheduling.fuse.translate_in_tiles", refuse_tiles)
    offline.compile_for_gpu(swiglu_norm, norm_inputs(), context=enabled())
    (group,) = bridge.report().groups
    assert (group.fused, group.kernels_after) == (True, 1)
    assert "not in blocks of a tile [not_profitable]: blocks are too large" in group.decisions


def heads_gated(x):
    """Gate and return normed heads: one kernel gets other loops by itself, and in pieces both are one."""
    normed = F.layer_norm(x.unflatten(-1, (-1, 128)), (128,)).flatten(-2)
    gate, up = normed.chunk(2, -1)
    return gate * up, normed + x


def gated_group():
    offline.compile_for_gpu(heads_gated, (torch.randn(64, 1024),), context=enabled())
    (group,) = bridge.report().groups
    return group


def try_nothing(commit, *_):
    commit.group.in_pieces = True
    return False


def test_a_kernel_that_got_other_loops_alone_is_tried_in_pieces_with_others():
    group = gated_group()
    assert (str(group.done), group.apart) == ("2 kernels merged into 1", [])
    assert group.bytes_after == group.bytes_if_one < group.bytes_before


def test_a_kernel_has_its_other_loops_again_where_pieces_come_to_nothing(monkeypatch):
    monkeypatch.setattr(fuse, "_may_gain_otherwise", lambda *_: False)
    before = gated_group()
    monkeypatch.undo()
    monkeypatch.setattr(fuse, "_try_in_pieces", try_nothing)
    again = gated_group()
    assert str(again.done) == str(before.done) == "1 kernel with other loops"
    assert (again.decisions, again.apart, again.bytes_after) == (before.decisions, before.apart, before.bytes_after)


def test_an_order_that_needs_more_memory_than_inductors_schedule_is_taken_back(monkeypatch):
    """Check that an order that needs more memory than Inductor's is undone, as of an estimate that counts twice.

    The order makes all large tensors first, and then what is made of each.
    """
    seen, keep, order = [], fuse.keep_order_below, memory.reorder_for_peak_memory

    def order_badly(*given):
        order(*given)  # for what it notes of each kernel
        return memory.topological_sort_bfs(given[0])

    def watched(schedule, most):
        keep(schedule, most)
        monkeypatch.setattr(memory, "reorder_for_peak_memory", order_badly)
        replace_next_call(schedule[0].scheduler, "compute_last_usage", partial(look, schedule, most))

    def look(schedule, most, compute):
        seen.append((peak_bytes(schedule[0].scheduler.nodes), most, peak_bytes(memory.topological_sort_bfs(schedule))))
        compute()

    monkeypatch.setattr(fuse, "keep_order_below", watched)
    offline.compile_for_gpu(branches, [torch.randn(64, 16), torch.randn(4, 16, 512)], context=enabled())
    ((taken, most, by_inductor),) = seen
    assert taken <= most < by_inductor


def branches(x, weights):
    """Compute four tensors of 128 KB, of each of which a fused kernel makes a number a row."""
    found = []
    for weight in weights.unbind():
        y = x @ weight
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        gate, up = y.chunk(2, dim=-1)
        found.append((torch.sigmoid(gate) * up).amax(-1) @ x)
    return torch.stack(found)
