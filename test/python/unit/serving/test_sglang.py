"""Test SGLang's plug-in, and a compilation as SGLang asks for it."""

from __future__ import annotations

import pytest
import torch
from counted import FUSED, compile_and_run

import bridge
from bridge import reports
from bridge.scheduling import hook
from bridge.serving import sglang


@pytest.fixture(autouse=True)
def uninstalled(monkeypatch):
    monkeypatch.setattr(reports, "_warned", set())
    yield
    bridge.uninstall()


def test_nothing_where_nobody_asks(monkeypatch):
    monkeypatch.delenv("BRIDGE_SGLANG", raising=False)
    sglang.register()
    assert hook.current() is None


def test_a_compilation_with_combo_kernels(compiler, monkeypatch):
    """Check a compilation with combo kernels, which SGLang turns on for each layer's forward."""
    monkeypatch.setenv("BRIDGE_SGLANG", '{"max_nodes": 32}')
    sglang.register()
    sglang.register()
    with torch._inductor.config.patch(combo_kernels=True, benchmark_combo_kernel=False):
        assert compile_and_run() == FUSED
    assert hook.current().options.max_nodes == 32


def test_a_failure_is_a_warning(monkeypatch):
    monkeypatch.setenv("BRIDGE_SGLANG", '{"nonsense": 1}')
    with pytest.warns(RuntimeWarning, match="bridge is off, .*nonsense"):
        sglang.register()
    assert hook.current() is None
