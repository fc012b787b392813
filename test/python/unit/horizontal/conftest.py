"""A graph of tensors, for kernels that only have names of what they read."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from torch._inductor.virtualized import V


@pytest.fixture
def only_tensors():
    """Has all buffers be single tensors, whatever they are called."""
    with V.set_graph_handler(SimpleNamespace(name_to_buffer={}, scheduler=SimpleNamespace(mutation_real_name={}))):
        yield
