"""Test that small sums across rows are one kernel of the same loops: code, numbers, report, and room in memory."""

from __future__ import annotations

import pytest
import torch
from torch._inductor.choices import InductorChoices

import bridge
from bridge import offline
from bridge.backend import bridge as backend
from bridge.horizontal.peak_memory import Room
from bridge.offline.interpret import interpreter
from bridge.reasons import Reason, Unsupported

INPUTS = [torch.empty(8192, 1024) for _ in range(5)]


def token_shift(x, gradient, *others):
    """Return three sums of columns, as the gradients of RWKV's mixtures are, and what needs more memory."""
    first, *rest = ((x * other * gradient).sum(0) for other in others)
    return first + 1, *rest, gradient.t() @ x @ x.t()


def kernels_of(function, inputs):
    torch._dynamo.reset()
    return [kernel.source for kernel in offline.compile_for_gpu(function, inputs, compile_fx=backend).kernels]


def test_second_stages_of_the_same_loops_are_one_kernel():
    """RWKV's three gradients had a launch of 2 us for each sum of 64 parts."""
    *_, adding = kernels_of(token_shift, INPUTS)
    assert adding.count("tl.store(") == 3 and adding.count("tl.sum(") == 3
    assert "3 kernels merged into 1" in str(bridge.report())


def test_they_stay_apart_without_room_in_memory(monkeypatch):
    def refuse(*_):
        raise Unsupported(Reason.not_profitable, "the graph would need more")

    monkeypatch.setattr(Room, "check", refuse)
    kernels_of(token_shift, INPUTS)
    assert bridge.report().kernels_after == bridge.report().kernels_before


@pytest.mark.parametrize("columns", [24, 32])
def test_numbers_of_one_kernel_for_several_sums(monkeypatch, columns):
    split = staticmethod(lambda device, rows, columns, inner_reduction: 1 if inner_reduction else 9)
    monkeypatch.setattr(InductorChoices, "reduction_split_factor", split)
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(99, columns, generator=generator) for _ in range(5)]
    torch._dynamo.reset()
    with interpreter(), torch.no_grad():
        found = torch.compile(token_shift, backend="bridge", dynamic=False, options={"strict": True})(*inputs)
    assert any("one kernel of the same loops for 3" in group.decisions for group in bridge.report().groups)
    exact = token_shift(*(tensor.double() for tensor in inputs))
    for one, other in zip(found[:3], exact[:3], strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5)
