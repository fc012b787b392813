"""Test what a group's translation is: its nodes by name and their affine function, within the limits of the options."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from explained import example_inputs, gated
from schedules import look_at_schedule

from bridge.options import Options
from bridge.reasons import Reason, Unsupported
from bridge.scheduling.grouping import form_groups
from bridge.scheduling.translation import loop_bodies, pipeline_of, translate
from bridge.support.recorder import NO_STAGES

CPU_PASSES = "unroll-and-jam=true simt-target=false"
AGAIN = "recompute-math=true recompute-draws=true"
CPU = SimpleNamespace(device=torch.device("cpu"), rows_of_segments=True)
GPU = SimpleNamespace(device=torch.device("cuda"), rows_of_segments=False)


@pytest.fixture(scope="module")
def found():
    """Return what `translate` makes of the one group of a schedule under several options."""
    results = {}

    def attempt(group, schedule, options):
        try:
            return translate(group, schedule, options, NO_STAGES, "group0")
        except Unsupported as refusal:
            return refusal

    def look(schedule):
        (group,), _ = form_groups(schedule, 64)
        results["default"] = attempt(group, schedule, Options())
        results["culprit"] = group.culprit
        results["max_nodes"] = attempt(group, schedule, Options(max_nodes=1))
        results["max_accesses"] = attempt(group, schedule, Options(max_accesses=1))
        results["bodies"] = [(name, sizes) for name, sizes, _ in loop_bodies(schedule)]

    look_at_schedule(gated, example_inputs(), look)
    return results


def test_every_node_has_a_nest_in_the_function(found):
    nodes, translation = found["default"]
    assert list(nodes) == [trace.name for trace in translation.traces] == [name for name, _ in found["bodies"]]
    assert "func.func @group0(" in str(translation.module)
    assert found["culprit"] is None


@pytest.mark.parametrize(
    ("option", "words"), [("max_nodes", "2 nodes, at most 1"), ("max_accesses", "stores, at most 1")]
)
def test_a_group_beyond_a_limit_is_refused(found, option, words):
    refusal = found[option]
    assert refusal.reason is Reason.budget_exceeded
    assert words in refusal.detail


@pytest.mark.parametrize(
    ("options", "keeps_roundings", "pipeline"),
    [
        ({"pipeline": "builtin.module(cse)"}, True, "builtin.module(cse)"),
        ({}, False, f"builtin.module(bridge-fuse{{{CPU_PASSES}}})"),
        (
            {"force_fusion": True},
            True,
            f"builtin.module(bridge-fuse{{{CPU_PASSES} {AGAIN} excess-precision=false}})",
        ),
    ],
)
def test_pipeline_of_a_group(options, keeps_roundings, pipeline):
    translation = SimpleNamespace(keeps_roundings=keeps_roundings)
    assert pipeline_of(Options(**options), CPU, translation) == pipeline


def test_passes_without_rows_of_segments():
    translation = SimpleNamespace(keeps_roundings=False)
    assert pipeline_of(Options(), GPU, translation) == "builtin.module(bridge-fuse{rows-of-segments=false})"


def test_the_kernel_that_looks_up_what_the_group_writes_is_at_fault():
    """Check that the kernel that looks up what the group writes is at fault; the others are tried again without it."""

    def fn(x):
        total = x.sum(-1)
        first, second = (x * total[:, None]).chunk(2, -1)
        return first * second, x.sin() * total[x.argmax(-1) % x.shape[0]][:, None]

    seen: dict = {}

    def look(schedule):
        (group, *_), _ = form_groups(schedule, 64)
        with pytest.raises(Unsupported) as refused:
            translate(group, schedule, Options(), NO_STAGES, "group0")
        seen.update(reason=refused.value.reason, culprit=group.culprit, positions=group.positions)

    look_at_schedule(fn, [torch.randn(8, 64)], look)
    assert seen["reason"] is Reason.indirect_index
    assert seen["culprit"] in seen["positions"][1:]
