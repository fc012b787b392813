"""Inductor's configuration, for tests of what Bridge puts into it, and a graph for kernels of names alone."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import bridge


@pytest.fixture
def config():
    from torch._inductor import config

    yield config
    bridge.uninstall()
    assert config._post_fusion_custom_pass is None, "a test or Bridge left something in the hook"


@pytest.fixture
def only_tensors():
    """Make all buffers single tensors, whatever they are called."""
    from torch._inductor.virtualized import V

    with V.set_graph_handler(SimpleNamespace(name_to_buffer={}, scheduler=SimpleNamespace(mutation_real_name={}))):
        yield
