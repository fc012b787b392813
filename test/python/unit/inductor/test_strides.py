"""Test who sees the strides of a graph's results, and in which order tensors lie in memory."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch._guards import TracingContext, tracing
from torch._inductor.virtualized import V
from torch.fx import Graph

from bridge.inductor import strides


def graph_of(count, visible):
    """Return a graph with `count` results, of which those places are visible, and the nodes that make them."""
    graph = Graph()
    given = graph.placeholder("x")
    nodes = [graph.call_function(torch.neg, (given,)) for _ in range(count)]
    for node in nodes:
        node.meta["val"] = torch.zeros(2, 3)
    result = graph.output(tuple(nodes))
    if visible is not None:
        result.meta["user_visible_output_idxs"] = visible
    result.meta["original_output_strides"] = [(3, 1)] * count
    return graph, nodes


class Known:
    """Stand for what AOTAutograd knows of a forward: its first results are the user's, `saved` the backward's."""

    def __init__(self, saved, symbols=0):
        self.tensors_saved_for_backwards_slice = saved
        self.num_symints_saved_for_bw = symbols


def results(graph, known):
    context = TracingContext(None)
    context.fw_metadata = known
    with tracing(context):
        return strides.results(graph)


class TestResults:
    def test_by_who_sees_them(self):
        graph, nodes = graph_of(4, [0])
        found = results(graph, Known(slice(2, 4)))
        assert found.saved == set(nodes[2:])
        assert found.visible == {nodes[0]: (3, 1)}
        assert found.fixed == {nodes[1]}

    def test_one_that_is_also_visible_is_not_saved_alone(self):
        graph, nodes = graph_of(3, [0])
        graph.erase_node(next(iter(reversed(graph.nodes))))
        graph.output((nodes[0], nodes[1], nodes[0])).meta.update(
            user_visible_output_idxs=[0], original_output_strides=[(3, 1)] * 3
        )
        assert results(graph, Known(slice(1, 3))).saved == {nodes[1]}

    @pytest.mark.parametrize(
        ("visible", "known"),
        [(None, Known(slice(1, 2))), ([0], None), ([0], Known(slice(1, 2), None)), ([0], Known(slice(1, 5), 3))],
        ids=["not told", "no tracing", "no backward", "the backward"],
    )
    def test_of_another_graph_none_are_saved(self, visible, known):
        graph, _ = graph_of(2, visible)
        assert results(graph, known) == strides.Results()

    def test_of_a_backward_with_more_results_than_the_forward_none_are_saved(self):
        """Check that a backward with more results than the forward has none saved: gradients were taken for such."""
        graph, _ = graph_of(6, [0, 1])
        with graph.inserting_before(next(iter(graph.nodes))):
            graph.placeholder("tangents_1")
        assert results(graph, Known(slice(2, 6))) == strides.Results()


def test_the_buffers_that_a_forward_keeps(monkeypatch):
    """Test that they have the names of the results in these places."""
    graph, _ = graph_of(4, [0])
    named = [SimpleNamespace(get_name=lambda name=f"buf{at}": name) for at in range(4)]
    lowering = SimpleNamespace(module=SimpleNamespace(graph=graph), graph_outputs=named)
    context = TracingContext(None)
    context.fw_metadata = Known(slice(2, 4))
    with tracing(context), V.set_graph_handler(lowering):
        assert strides.kept_buffers() == {"buf2", "buf3"}
        context.fw_metadata = None
        assert strides.kept_buffers() == frozenset()


class TestOrder:
    def test_strides_of_one_element_do_not_count(self):
        assert strides.same_order(torch.zeros(2, 1, 3), torch.zeros(2, 1, 3).as_strided((2, 1, 3), (3, 7, 1)))
        assert not strides.same_order(torch.zeros(2, 3), torch.zeros(3, 2).t())

    def test_one_inner_dimension(self):
        rows = torch.zeros(2, 3, 4)
        assert strides.same_inner(rows, torch.zeros(3, 2, 4).transpose(0, 1))
        assert not strides.same_inner(rows, torch.zeros(2, 4, 3).transpose(1, 2))
        assert not strides.same_inner(torch.zeros(2, 3, 1), torch.zeros(3, 2, 1).transpose(0, 1))

    def test_shapes(self):
        assert strides.same_shape(torch.zeros(2, 3), torch.zeros(2, 3))
        assert not strides.same_shape(torch.zeros(2, 3), torch.zeros(2, 3, 1))
        assert not strides.same_shape(torch.zeros(2, 3), torch.zeros(1, 3))

    def test_dense(self):
        assert strides.is_dense(torch.zeros(2, 3).t())
        assert not strides.is_dense(torch.zeros(2, 4)[:, :3])
        assert not strides.is_dense(torch.zeros(1, 3).expand(2, 3))


@pytest.mark.parametrize(
    ("operator", "own"),
    [
        (torch.ops.aten._scaled_dot_product_efficient_attention.default, True),
        (torch.ops.aten._cdist_forward.default, False),
        (torch.ops.aten.mm.default, False),
    ],
)
def test_rules_of_one_operator(operator, own):
    """Find that attention has a rule for strides, and that a product, or what takes the graph's strides, has none."""
    call = Graph().call_function(operator, ())
    assert strides.has_own_rule(call) == own
