"""Test what stands for the operations between two values of a part of a graph."""

import pytest
import torch
from torch._inductor.debug import DebugContext
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph

from bridge.inductor import trial
from bridge.inductor.outside import computed_outside

aten = torch.ops.aten


@pytest.fixture
def mode():
    return FakeTensorMode(static_shapes=True)


def two_kernels(mode, connected: bool) -> Graph:
    """Return exp of an input, and its product with another one; connected: with what is computed from exp."""
    graph = Graph()
    with mode:
        value = torch.empty(32, 32)
    first = graph.placeholder("first")
    exp = graph.call_function(aten.exp.default, (first,))
    other = graph.placeholder("other")
    first.meta["val"] = exp.meta["val"] = other.meta["val"] = value
    inner = computed_outside(graph, [exp], other) if connected else other
    product = graph.call_function(aten.mul.Tensor, (first, inner))
    product.meta["val"] = value
    graph.output((exp, product))
    return torch.fx.GraphModule(torch.nn.Module(), graph).graph


@pytest.mark.parametrize("connected", [True, False])
def test_kernels_with_other_operations_between_them_stay_two(connected, mode):
    with V.set_fake_mode(mode), V.set_debug_handler(DebugContext()):
        found = trial.Trials(inference=True).estimate(two_kernels(mode, connected))
    assert found.kernels == (2 if connected else 1)


def test_what_is_computed_outside_has_the_value_that_it_has_in_the_graph(mode):
    graph = Graph()
    with mode:
        value = torch.empty_strided((4, 6), (1, 4), dtype=torch.bfloat16)
        read, node = graph.placeholder("read"), graph.placeholder("product")
        read.meta["val"], node.meta["val"] = torch.empty(2), value
        made = computed_outside(graph, [read], node)
        shape = made.target([read.meta["val"]], *made.args[1:])
    assert made.meta["val"] is value and made.args[0] == [read]
    assert (shape.shape, shape.stride(), shape.dtype) == (value.shape, value.stride(), value.dtype)
