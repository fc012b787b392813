"""Test the graphs that a program compiles."""

from __future__ import annotations

import torch

from bridge.offline.graphs import collecting


def test_graphs_of_both_backends_run_eagerly_and_keep_their_first_inputs(compiler):
    x = torch.arange(4.0)
    with collecting() as graphs:
        first, second = compiler(torch.sin), compiler(torch.cos, backend="bridge")
        compiler(torch.tan)
        torch.testing.assert_close(first(x), x.sin(), rtol=0, atol=0)
        first(x + 1)
        torch.testing.assert_close(second(x), x.cos(), rtol=0, atol=0)
    assert [graph.calls for graph in graphs] == [2, 1]
    assert [torch.equal(graph.inputs[0], x) and not graph.trained for graph in graphs] == [True, True]


def test_graphs_with_a_gradient_are_marked(compiler):
    x = torch.arange(4.0, requires_grad=True)
    with collecting() as graphs, torch.enable_grad():
        compiler(torch.sin)(x).sum().backward()
    (graph,) = graphs
    assert graph.trained and not graph.inputs[0].requires_grad
    torch.testing.assert_close(x.grad, x.detach().cos())
