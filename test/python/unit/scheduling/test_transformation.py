"""Test what the passes make of a group's translation, and the loops that the lift gives back."""

from __future__ import annotations

import contextlib

import pytest
from explained import example_inputs, gated
from schedules import look_at_schedule

from bridge.options import Options
from bridge.scheduling.grouping import form_groups
from bridge.scheduling.transformation import lift, transform, transform_unseen
from bridge.scheduling.translation import loop_choices, pipeline_of, translate_somehow
from bridge.support.recorder import NO_STAGES


@pytest.fixture(scope="module")
def found():
    """Return what each function makes of the one group of a schedule; stages: the clock's, in order."""
    results: dict = {}

    def look(schedule):
        (group,), _ = form_groups(schedule, 64)
        options, stages = Options(), []

        def translated():
            return translate_somehow("group0", group, schedule, loop_choices(group, schedule), options.max_accesses)

        def clock(stage):
            stages.append(stage)
            return contextlib.nullcontext()

        translation = translated()
        pipeline = pipeline_of(options, group, translation)
        results["transformed"] = transform(translation, pipeline, options, NO_STAGES, clock)
        with translation.module.context:
            results["tables"], results["bands"] = lift(translation, options, group)
        results["names"] = [trace.name for trace in translation.traces]
        results["unseen"] = transform_unseen(translated(), options, group)
        results["idle"] = transform(translated(), "builtin.module(canonicalize)", options, NO_STAGES, clock)
        results["stages"] = stages

    look_at_schedule(gated, example_inputs(), look)
    return results


def test_all_nodes_of_a_fused_group_are_in_one_band(found):
    (band,) = found["bands"]
    assert sorted(node.name for node in band.nodes) == sorted(found["names"])


def test_what_nobody_sees_is_the_same(found):
    (band,), (unseen,) = found["bands"], found["unseen"]
    assert [(n.name, n.iter_sizes, n.reduce_sizes) for n in unseen.nodes] == [
        (n.name, n.iter_sizes, n.reduce_sizes) for n in band.nodes
    ]


def test_nothing_is_proven_again_unless_asked(found):
    assert found["stages"] == ["passes", "passes"]
    assert found["transformed"].certificate == ()


def test_passes_that_fuse_nothing_have_no_remarks(found):
    assert (found["idle"].remarks, found["idle"].counterexamples) == ((), ())


def test_the_lift_knows_the_code_generator(found):
    assert found["tables"].simt_target is False
