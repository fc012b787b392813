"""Test Inductor's flag `benchmark_fusion`: what is fused is what is faster."""

from __future__ import annotations

import math

import pytest
import torch
from emitted import emitted_for
from functions import rows, sample

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.lowering.triton import codegen


@pytest.fixture
def timed(monkeypatch):
    """Return a function that sets the time of kernels by their numbers of nodes, and returns their sources."""

    def install(milliseconds):
        sources: list[str] = []

        def measure(kernel):
            with torch._inductor.config.patch("triton.unique_kernel_names", True):
                sources.append(kernel.scheduler.generate_kernel_code_from_nodes(kernel.get_nodes(), True))
            return milliseconds(len(kernel.get_nodes()))

        monkeypatch.setattr(codegen, "times_fusions", lambda device: True)
        monkeypatch.setattr(codegen, "milliseconds", measure)
        return sources

    return install


def kernels_made() -> int:
    torch._dynamo.reset()
    return offline.compile_for_gpu(rows, [sample()], compile_fx=bridge_backend).n_kernels


def test_a_faster_kernel_is_taken(timed):
    sources = timed(lambda nodes: 1.0)
    assert kernels_made() == 1
    (group,) = bridge.report().groups
    assert "measured 2000.0 us apart, 1000.0 us fused" in group.decisions
    assert len(sources) == 3


def test_a_fused_kernel_is_timed_as_it_will_be(timed):
    """Check that a fused kernel is timed as it will be: its row is kept; those that it replaces are Inductor's."""
    *apart, fused = timed_sources(timed)
    assert "fixed_config(" in fused
    assert "for r0_offset" not in fused
    assert not any("fixed_config(" in source for source in apart)


def timed_sources(timed) -> list[str]:
    sources = timed(lambda nodes: 1.0)
    kernels_made()
    return sources


@pytest.mark.parametrize("together", [2.0, 3.0, math.inf])
def test_a_slower_kernel_is_not_taken(timed, together):
    timed(lambda nodes: together if nodes > 1 else 1.0)
    assert kernels_made() == 2
    (group,) = bridge.report().groups
    assert group.reason is bridge.Reason.not_profitable
    assert f"2000.0 us apart, {1e3 * together:.1f} us fused" in group.detail


def test_kernels_that_stay_apart_are_as_they_were(timed):
    timed(lambda nodes: math.inf if nodes > 1 else 1.0)
    torch._dynamo.reset()
    codes: list[str] = []
    with emitted_for("sm_90", codes):
        torch.compile(rows, backend=bridge_backend)(sample())
    ours = codes[-1]
    torch._dynamo.reset()
    codes = []
    with emitted_for("sm_90", codes):
        torch.compile(rows)(sample())
    assert strip(ours) == strip(codes[-1])


def strip(code: str) -> list[str]:
    """Return code without comments, which name the file that asked."""
    return [line for line in code.splitlines() if not line.lstrip().startswith("#")]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu():
    torch._dynamo.reset()
    inputs = torch.randn(2048, 8192, device="cuda", dtype=torch.bfloat16)
    with torch.no_grad():
        torch.compile(rows, backend=bridge_backend, options={"benchmark_fusion": True})(inputs)
    (group,) = bridge.report().groups
    assert group.fused
    assert any("us apart" in decision for decision in group.decisions)
