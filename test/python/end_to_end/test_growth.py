"""Test graphs of many kernels: groups are bounded, and what is done for them grows no faster than the graph."""

from __future__ import annotations

import pytest
import torch
from compile_time import blocks, chain, fan

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.reasons import Reason


def compiled(graph, **options):
    def backend(gm, inputs):
        return bridge_backend(gm, inputs, options=options)

    kernels = offline.compile_for_gpu(*graph, compile_fx=backend).n_kernels
    return kernels, bridge.report()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("limit", [4, 8])
@pytest.mark.parametrize("graph", [chain(12), fan(12)], ids=["chain", "fan"])
def test_no_group_is_larger_than_allowed(graph, limit):
    """Check that no group has more nodes than allowed, but for a single kernel of Inductor, which is left as it is.

    Kernels that only share a launch are not translated, and not counted here.
    """
    _, report = compiled(graph, max_nodes=limit)
    translated = [group for group in report.groups if "translate" in group.seconds]
    sizes = [len(group.nodes) for group in translated if group.kernels_before > 1]
    assert len(sizes) > 1 and max(sizes) <= limit


@pytest.mark.in_turn(2)
def test_one_buffer_with_many_readers_still_fuses():
    graph = fan(20)
    kernels, report = compiled(graph)
    assert report.counters["groups_seen"] >= 1 and report.counters["groups_fused"] > 0
    assert kernels < offline.compile_for_gpu(*graph).n_kernels


@pytest.mark.in_turn(2)
def test_groups_grow_as_the_graph():
    seen = [compiled(chain(size), max_nodes=8)[1].counters["groups_seen"] for size in (4, 8, 16)]
    assert seen == [1, 2, 4]


@pytest.mark.in_turn(2)
def test_recomputation_along_a_chain_has_an_end():
    """Check that recomputation along a chain is limited.

    Each link reads two lanes of the one before: without a limit, 16 links would be computed 2 ** 16 times.
    """
    kernels, report = compiled(chain(16))
    assert 1 < kernels < 16
    assert any(reason == "budget_exceeded" for group in report.groups for reason, *_ in group.remarks)


def steps(count):
    """Return (function, inputs) of steps that each read the two before them; the last one is read in reverse, too."""

    def function(x, w):
        before, last, kept = x, x * w, []
        for _ in range(count):
            before, last = last, before * 0.5 + last * w
            kept.append(last)
        return *kept, last.flip(-1) - last.amax(-1, keepdim=True)

    return function, [torch.randn(16, 64), torch.randn(64)]


def test_steps_with_two_ways_back_are_each_asked_about_once():
    """Check that a step that can be reached in two ways is asked about once.

    Asked about on every way, 28 steps were 2 ** 20 questions, and the helper process gave no answer.
    """
    _, report = compiled(steps(28), isolate=True)
    assert [group.reason for group in report.groups] == [Reason.budget_exceeded]


def test_blocks_of_library_calls_stay_as_they_are():
    graph = blocks(2)
    assert compiled(graph)[0] == offline.compile_for_gpu(*graph).n_kernels
