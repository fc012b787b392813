"""Test loop nodes that ask if what they load equals something else."""

from __future__ import annotations

import pytest
import torch
from schedules import scheduled

from bridge.inductor.equalities import compares
from bridge.inductor.schedule import loop_nodes


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x, y: torch.where(x == y, x, 0), True),
        (lambda x, y: torch.where(x * 2 != y, y, 0), True),
        (lambda x, y: torch.where(x == 0, x, y), False),
        (lambda x, y: torch.where(x > y, x, y), False),
        (lambda x, y: x * (y == y + 1), False),
    ],
)
def test_equalities_of_computed_values(function, expected):
    with scheduled(function, (64, 32), (64, 32)) as graph:
        (kernel,) = graph.scheduler.nodes
        (node,) = loop_nodes(kernel)
        first = graph.graph_input_names[0]
        assert compares(node, first) is expected
