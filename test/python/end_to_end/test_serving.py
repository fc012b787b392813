"""Test ways into Inductor that servers of language models take; test/vllm has the tests with a real one."""

from __future__ import annotations

import pytest
import torch
from functions import rows, sample
from torch.fx.experimental.proxy_tensor import make_fx

import bridge


@pytest.fixture
def piece(compiler):
    """Return a graph as vLLM cuts it out of Dynamo's, with a symbolic number of tokens, and its inputs."""
    x = sample()
    torch._dynamo.mark_dynamic(x, 0)
    found = []

    def keep(graph, inputs):
        found.append((graph, inputs))
        return graph

    torch.compile(rows, backend=keep, fullgraph=True)(x)
    return found[0]


@pytest.mark.parametrize("aot", [False, True], ids=["artifact", "bundled"])
def test_standalone_compile(piece, aot):
    """Check vLLM's compilation of piecewise graphs, for any number of tokens."""
    graph, inputs = piece
    fake = [node.meta["example_value"] for node in graph.graph.nodes if node.op == "placeholder"]
    with bridge.enabled() as report:
        compiled = torch._inductor.standalone_compile(graph, fake, dynamic_shapes="from_graph", aot=aot)
    assert len(report.fused) == 1
    for tokens in (32, 5):
        given = [tokens if isinstance(value, int | torch.SymInt) else sample()[:tokens] for value in inputs]
        torch.testing.assert_close(tuple(compiled(*given)), rows(sample()[:tokens]))


def test_standalone_compile_of_one_size(compiler):
    """Check compilation for one size, as of vLLM's `compile_sizes`."""
    graph = make_fx(rows)(sample())
    with bridge.enabled() as report:
        compiled = torch._inductor.standalone_compile(graph, [sample()], dynamic_shapes="from_example_inputs")
    assert len(report.fused) == 1
    torch.testing.assert_close(tuple(compiled(sample())), rows(sample()))


def test_a_compilation_as_sglang_asks_for_it(compiler):
    """Check whole layers with the mode and the options that SGLang sets, and with combo kernels."""
    layer = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.RMSNorm(64))
    options = {"combo_kernels": True, "benchmark_combo_kernel": False, "coordinate_descent_tuning": True}
    with torch._inductor.config.patch(options), bridge.enabled() as report:
        compiled = torch.compile(lambda x: rows(layer(x)), mode="max-autotune-no-cudagraphs", dynamic=False)
        torch.testing.assert_close(compiled(sample()), rows(layer(sample())))
    assert report.graphs == 1 and report.fused
