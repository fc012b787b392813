"""Test that a claim is what was emitted: the report's kernels are those of the wrapper."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest
import torch
from emitted_claims import wrong_claims
from functions import rows, sample
from patterns import TESTED
from torch._inductor.utils import run_and_get_code
from watched_claims import emitted_meanwhile

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.diagnostics.recording import recorded


@pytest.mark.one_in(10)
@pytest.mark.parametrize("pattern", TESTED, ids=lambda pattern: pattern.name)
def test_triton(pattern):
    inputs = pattern.make(None, torch.bfloat16, "cpu", small=True)
    with recorded() as recording:
        result = offline.compile_for_gpu(pattern.function, inputs, compile_fx=bridge_backend, dynamic=False)
    assert wrong_claims(bridge.report(), [graph.code for graph in result.graphs], recording.kernels) == []


def gate(x):
    left, right = x.chunk(2, -1)
    return left * right.sigmoid()


def gated_twice(x):
    """Normalise and gate twice: a loop over the row stores what the second norm reads in its later pass."""
    once = gate(x)
    twice = gate(once * torch.rsqrt(once.pow(2).mean(-1, keepdim=True) + 1e-5))
    return (twice * torch.rsqrt(twice.pow(2).mean(-1, keepdim=True) + 1e-5)).to(torch.bfloat16)


def test_what_a_loop_stores_for_its_next_pass_is_moved():
    """Check that what a loop stores for its next pass counts as moved.

    It was said to stay inside of the kernel, as it does where that keeps its rows in registers.
    """
    backend = functools.partial(bridge_backend, options={"persistent": False})
    with recorded() as recording, torch._inductor.config.patch({"triton.persistent_reductions": False}):
        result = offline.compile_for_gpu(gated_twice, [torch.randn(8, 256)], compile_fx=backend, dynamic=False)
    report = bridge.report()
    assert report.fused and not report.counters.get("refused.internal_error")
    assert wrong_claims(report, [graph.code for graph in result.graphs], recording.kernels) == []


def halves_and_columns(x):
    left, right = gate(x).chunk(2, -1)
    return left.softmax(-1) * right, x.sum(-1), x.amax(0)


def test_one_launch_that_chooses_from_several_kernels_is_counted_as_it_runs():
    """Check that a launch that chooses from several kernels counts once.

    Kernels that a launch chooses from were counted as launches, and the launch was not.
    """
    backend = functools.partial(bridge_backend, options={"force_fusion": True})
    with recorded() as recording, torch._inductor.config.patch({"triton.multi_kernel": 2}):
        result = offline.compile_for_gpu(halves_and_columns, [torch.randn(40, 256)], compile_fx=backend, dynamic=False)
    codes = [graph.code for graph in result.graphs]
    assert wrong_claims(bridge.report(), codes, recording.kernels) == []
    claimed = replace(bridge.report(), kernels_after=bridge.report().kernels_after + 1)
    assert wrong_claims(claimed, codes, recording.kernels) != []


@pytest.mark.in_turn(2)
def test_cpp(compiler):
    with recorded() as recording:
        _, codes = run_and_get_code(compiler(rows, backend="bridge"), sample())
    assert wrong_claims(bridge.report(), codes, recording.kernels) == []
    assert bridge.report().kernels_after == 1


def test_a_wrong_claim_is_found(compiler):
    _, codes = run_and_get_code(compiler(rows, backend="bridge"), sample())
    claimed = replace(bridge.report(), kernels_after=2)
    assert len(wrong_claims(claimed, codes)) == 2


def test_every_report_is_compared_with_what_was_emitted_for_it(compiler):
    with emitted_meanwhile() as found:
        for size in (64, 32):
            torch._dynamo.reset()
            compiler(rows, backend="bridge")(sample()[..., :size].contiguous())
    assert [emitted.wrong_claims() for emitted in found] == [[], []]
    assert all(len(emitted.codes) == 1 and emitted.kernels for emitted in found)
    found[1].report.kernels_after += 1
    assert found[0].wrong_claims() == [] != found[1].wrong_claims()


def scaled_twice(x):
    return ((x @ x) * 2) @ x * 2


def either(x):
    return torch.cond(x.sum() > 0, lambda t: t.softmax(-1).clone(), lambda t: t - t.amax(-1, keepdim=True), (x,))


@pytest.mark.parametrize("function", [scaled_twice, either])
def test_calls_of_one_function_and_branches_are_counted_as_they_run(function, compiler):
    """Check that calls of one function and branches are counted as they run.

    Equal C++ kernels were counted as one, being one function; the code of a branch as another wrapper, too.
    """
    with emitted_meanwhile() as found:
        compiler(function, backend="bridge")(torch.randn(8, 8))
    assert [emitted.wrong_claims() for emitted in found] == [[]]
    assert [len(emitted.codes) for emitted in found] == [1]
    found[0].report.kernels_after += 1
    assert found[0].wrong_claims() != []
