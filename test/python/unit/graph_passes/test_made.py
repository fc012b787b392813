"""Test that nodes that a pass makes stand before another one, know their values, and can be erased again."""

from __future__ import annotations

import torch
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph

from bridge.graph_passes.made import Made, erase_unread

aten = torch.ops.aten


def test_places_are_numbers_along_a_dimension_and_can_be_erased():
    graph, mode = Graph(), FakeTensorMode()
    x = graph.placeholder("x")
    before = graph.call_function(aten.sin.default, (x,))
    graph.output(before)
    with mode, V.set_fake_mode(mode):
        x.meta["val"] = before.meta["val"] = torch.empty(4, 3, 5)
        made = Made(graph, before)
        places = made.places([4, 3, 5], 1, before.meta["val"], start=2)
    assert places.meta["val"].shape == (3, 1) and places.meta["val"].dtype is torch.int64
    assert [node for node in graph.nodes if node < before] == [x, *made.nodes] and made.nodes[-1] is places
    assert made.nodes[0].kwargs["start"] == 2
    made.erase()
    assert list(graph.nodes)[:2] == [x, before]


def test_what_something_reads_stays_when_what_nothing_reads_is_erased():
    """Check that a chain that nothing reads is erased in any order of its nodes, and a node with a reader stays."""
    graph = Graph()
    x = graph.placeholder("x")
    first, kept = (graph.call_function(aten.sin.default, (x,)) for _ in range(2))
    second = graph.call_function(aten.cos.default, (first,))
    graph.output(kept)
    erase_unread([first, kept, second])
    assert [node.op for node in graph.nodes] == ["placeholder", "call_function", "output"] and kept in graph.nodes
