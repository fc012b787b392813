"""Test what kernels to come will load, of small graphs."""

from __future__ import annotations

import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from bridge.graph_passes.loads import Memory, inputs_loads, level, needed_in_memory
from bridge.inductor.graphs import StoreLimits, aten

LIMITS = StoreLimits(reused=1, any=3)


def tensor(graph: Graph, name: str, *shape: int, dtype: torch.dtype = torch.float32) -> Node:
    node = graph.placeholder(name)
    node.meta["val"] = torch.empty(shape, dtype=dtype, device="meta")
    return node


def call(graph: Graph, target, *args) -> Node:
    node = graph.call_function(target, args)
    node.meta["val"] = target(*map_arg(args, lambda source: source.meta["val"]))
    return node


def test_pointwise_operations_and_views_are_followed_back_to_memory():
    graph = Graph()
    x, y = tensor(graph, "x", 4, 4), tensor(graph, "y", 4, 4)
    added = call(graph, aten.add.Tensor, x, y)
    turned = call(graph, aten.t.default, added)
    row = call(graph, aten.select.int, turned, 0, 1)
    known: dict = {}
    memory = Memory(set(), LIMITS)
    for node in (x, y, added, turned, row):
        known[node] = memory.loads(node, known)
    assert known == {x: {x}, y: {y}, added: {x, y}, turned: {x, y}, row: {row}}
    assert Memory({added}, LIMITS).loads(added, known) == {added}


def test_an_input_that_is_not_known_counts_as_in_memory():
    graph = Graph()
    x, y = tensor(graph, "x", 4), tensor(graph, "y", 4)
    added = call(graph, aten.add.Tensor, x, y)
    assert inputs_loads(added, {x: frozenset()}) == {y}
    assert inputs_loads(x, {}) == frozenset()


def test_what_a_library_call_reads_through_a_view_is_needed_in_memory():
    graph = Graph()
    x, y = tensor(graph, "x", 4, 4), tensor(graph, "y", 4, 4)
    added = call(graph, aten.add.Tensor, x, y)
    turned = call(graph, aten.t.default, added)
    product = call(graph, aten.mm.default, turned, y)
    active = call(graph, aten.relu.default, product)
    summed = call(graph, aten.sum.dim_IntList, active, [1])
    graph.output((summed,))
    assert needed_in_memory(list(graph.nodes)) == {added, turned, y, summed}


def test_levels_count_library_calls_on_the_longest_way():
    graph = Graph()
    x, y = tensor(graph, "x", 4, 4), tensor(graph, "y", 4, 4)
    product = call(graph, aten.mm.default, x, y)
    added = call(graph, aten.add.Tensor, x, product)
    levels = {x: 0}
    levels[product] = level(product, levels)
    assert levels[product] == 1
    assert level(added, levels) == 1
    assert level(call(graph, aten.relu.default, y), levels) is None


def test_inductor_stores_above_its_limits():
    graph = Graph()
    x, y = tensor(graph, "x", 4), tensor(graph, "y", 4)
    added = call(graph, aten.add.Tensor, x, y)
    call(graph, aten.relu.default, added)
    memory = Memory(set(), LIMITS)
    assert not memory.inductor_stores(added, frozenset([x, y]))
    call(graph, aten.neg.default, added)
    assert memory.inductor_stores(added, frozenset([x, y]))
    assert not memory.inductor_stores(added, frozenset([x]))


def test_a_value_of_few_digits_is_exact_in_memory_only():
    graph = Graph()
    half, single = tensor(graph, "half", 4, dtype=torch.bfloat16), tensor(graph, "single", 4)
    added = call(graph, aten.add.Tensor, half, half)
    active = call(graph, aten.relu.default, half)
    wide = call(graph, aten.add.Tensor, single, single)
    memory = Memory(set(), LIMITS)
    assert memory.exact(half, set()) and memory.exact(wide, set())
    assert not memory.exact(added, {half}) and Memory({added}, LIMITS).exact(added, set())
    assert memory.exact(active, {half}) and not memory.exact(active, set())
