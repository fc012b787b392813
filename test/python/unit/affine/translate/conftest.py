"""Hold what the tests of the translation share."""

from __future__ import annotations

import pytest
import torch
from torch._inductor.graph import GraphLowering
from torch._inductor.virtualized import V


@pytest.fixture
def graph():
    """Compile a graph: Inductor's size analysis asks the graph that is being compiled."""
    with V.set_graph_handler(GraphLowering(torch.fx.symbolic_trace(lambda x: x))):
        yield
