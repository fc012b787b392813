"""Test the parts of a graph around its changes."""

from __future__ import annotations

import copy
import operator

import pytest
import torch
from functions import weighted_norm
from torch.fx import Graph
from torch.fx.experimental.proxy_tensor import make_fx
from uncompiled import without_cpp

import bridge
from bridge.graph_passes import _worse_in_parts, change_graph
from bridge.graph_passes import regions as home
from bridge.graph_passes.regions import Region, changed_regions
from bridge.inductor import graphs, trial
from bridge.inductor.trial import Estimate

aten = torch.ops.aten


def layered(layers: int, inner: int = 2):
    """Return a function of layers: a product, pointwise operations, and the softmax of their result."""

    def function(x, *weights):
        for weight in weights:
            y = x @ weight
            for _ in range(inner):
                y = (y * 2).tanh()
            x = torch.softmax(y, -1)
        return x

    return function, [torch.randn(8, 8) for _ in range(layers + 1)]


def traced(function, inputs) -> Graph:
    return make_fx(function, tracing_mode="fake")(*inputs).graph


def with_sigmoids(graph: Graph, every: int = 1) -> tuple[Graph, Graph]:
    """Return a graph, and one in which sigmoid has the place of some tanh."""
    before = copy.deepcopy(graph)
    before.owning_module = graph.owning_module
    for node in [node for node in graph.nodes if node.target is aten.tanh.default][::every]:
        with graph.inserting_before(node):
            other = graph.call_function(aten.sigmoid.default, node.args)
        other.meta = dict(node.meta)
        node.replace_all_uses_with(other)
        graph.erase_node(node)
    return before, graph


def with_sigmoids_of_more(graph: Graph) -> tuple[Graph, Graph]:
    """Return a graph, and one in which the first sigmoid in the place of a tanh reads the cosine, too."""
    before, after = with_sigmoids(graph)
    sigmoid = next(node for node in after.nodes if node.target is aten.sigmoid.default)
    cosine = next(node for node in after.nodes if node.target is aten.cos.default)
    with after.inserting_before(sigmoid):
        more = after.call_function(aten.mul.Tensor, (sigmoid.args[0], cosine))
    more.meta = dict(sigmoid.meta)
    sigmoid.args = (more,)
    return before, after


def targets(graph: Graph) -> list[str]:
    return [str(node.target) for node in graph.nodes if node.op == "call_function"]


def test_layers_that_are_alike_are_one_region():
    """Check that layers that are alike are one region; of twelve, the first and the last have other neighbours."""
    before, after = with_sigmoids(traced(*layered(12)))
    found = changed_regions(before, after)
    assert found is not None and 1 <= len(found) <= 3
    assert sum(region.times for region in found) == 12 and all(region.apart for region in found)
    for region in found:
        assert "aten.tanh.default" in targets(region.before) and "aten.sigmoid.default" not in targets(region.before)
        assert "aten.sigmoid.default" in targets(region.after) and "aten.tanh.default" not in targets(region.after)
        # What a library computes is in a region, and nothing behind it.
        assert 1 <= targets(region.after).count("aten.mm.default") <= 2


def test_what_is_far_from_a_change_is_in_no_region(monkeypatch):
    monkeypatch.setattr(home, "HOPS", 1)
    before, after = with_sigmoids(traced(*layered(1, inner=40)), every=40)
    (region,) = changed_regions(before, after)
    assert targets(region.before).count("aten.mul.Tensor") == 2
    assert [node.op for node in region.before.nodes].count("placeholder") == 1


def test_a_small_graph_is_looked_at_as_a_whole():
    assert changed_regions(*with_sigmoids(traced(*layered(1)))) is None


def test_a_graph_whose_changes_are_not_seen_is_looked_at_as_a_whole():
    graph = traced(*layered(12))
    other = copy.deepcopy(graph)
    other.owning_module = graph.owning_module
    assert changed_regions(other, graph) is None


def test_a_value_that_is_to_be_stored_is_a_change():
    graph = traced(*layered(12))
    before = copy.deepcopy(graph)
    before.owning_module = graph.owning_module
    products = [node for node in graph.nodes if node.target is aten.tanh.default]
    graphs.store(products[10])
    (region,) = changed_regions(before, graph)
    assert [sum(map(graphs.is_stored, part.nodes)) for part in region[:2]] == [0, 1]


def test_values_that_one_node_gives_stay_together(monkeypatch):
    """Check that the values of one node stay together: no graph of Inductor returns several as one."""
    monkeypatch.setattr(home, "HOPS", 1)
    monkeypatch.setattr(home, "LARGEST_PART", 1)

    def function(x):
        mean, variance = torch.ops.aten.var_mean.correction((x * 2).tanh() + 1, [-1])
        return mean.exp().exp().exp(), variance.exp().exp().exp()

    (region,) = changed_regions(*with_sigmoids(traced(function, [torch.randn(8, 8)])))
    for part in region[:2]:
        ends = next(node for node in part.nodes if node.op == "output").all_input_nodes
        assert all(isinstance(node.meta["val"], torch.Tensor) for node in ends)
    monkeypatch.setattr(home, "HOPS", 2)
    (region,) = changed_regions(*with_sigmoids(traced(function, [torch.randn(8, 8)])))
    assert sum(node.target is operator.getitem for node in region.before.nodes) == 2


@pytest.mark.in_turn(2)
def test_a_trial_of_a_deep_model_lowers_a_part_of_it(compiler, monkeypatch):
    """Check that a trial of a deep model lowers a part of it.

    CrossViT took Bridge 25 s of a compilation, nearly all for two trials of the whole graph.
    """
    seen, whole = [], []
    estimate = trial.Trials.estimate

    def noted(trials, graph):
        seen.append(len(graph.nodes))
        return estimate(trials, graph)

    monkeypatch.setattr(trial.Trials, "estimate", noted)
    monkeypatch.setattr(
        "bridge.scheduling.hook.change_graph",
        lambda graph, *rest: whole.append(len(graph.nodes)) or change_graph(graph, *rest),
    )

    def deep(x, scale, *weights):
        for weight in weights:
            x = x + torch.relu(weighted_norm(x, scale) @ weight)
        return weighted_norm(x, scale)

    weights = [torch.randn(64, 64) for _ in range(16)]
    with without_cpp():
        compiler(deep, backend="bridge")(torch.randn(64, 64), torch.randn(64), *weights)
    assert len([line for line in bridge.report().choices if "stored" in line]) > 8
    assert seen and max(seen) < whole[0] / 2


def test_an_input_that_others_read_is_not_freed_in_a_region(monkeypatch):
    """Check that an input that others read has an argument's name in a region: Inductor does not free arguments."""
    monkeypatch.setattr(home, "HOPS", 1)
    monkeypatch.setattr(home, "LARGEST_PART", 1)

    def function(x, y):
        first, second = x.exp(), y.exp()
        return ((first * second).tanh() + 1).exp(), second.cos()

    (region,) = changed_regions(*with_sigmoids(traced(function, [torch.randn(8, 8)] * 2)))
    names = [node.name for node in region.before.nodes if node.op == "placeholder"]
    assert sorted(names) == ["arg_exp_1", "exp"]


def test_symbols_of_sizes_are_inputs_of_a_region(monkeypatch):
    """Check that symbols of sizes are inputs of a region.

    Without `s`, Inductor has no code for an input of `(s + 1) // 2` rows: the trial ended in an error.
    """
    monkeypatch.setattr(home, "HOPS", 1)
    monkeypatch.setattr(home, "LARGEST_PART", 1)

    def function(x):
        half = x.chunk(2)[0].exp()
        return ((half * 2).tanh() + 1).exp().cos()

    graph = make_fx(function, tracing_mode="symbolic")(torch.randn(8, 6)).graph
    (region,) = changed_regions(*with_sigmoids(graph))
    for part in region[:2]:
        inputs = [node.meta["val"] for node in part.nodes if node.op == "placeholder"]
        (tensor,) = [value for value in inputs if isinstance(value, torch.Tensor)]
        assert {str(value) for value in inputs if isinstance(value, torch.SymInt)} >= _names(tensor.shape[0])
        assert not str(tensor.shape[0]).isidentifier()


def _names(size: torch.SymInt) -> set[str]:
    return {str(symbol) for symbol in size.node.expr.free_symbols}


@pytest.mark.parametrize("changes", [True, False])
def test_what_changes_tensors_has_no_regions(changes, monkeypatch):
    monkeypatch.setattr(home, "LARGEST_PART", 1)

    def function(x, y):
        z = x.tanh() + 1
        return y.copy_(z) if changes else y + z

    found = changed_regions(*with_sigmoids(traced(function, [torch.randn(8, 8)] * 2)))
    assert (found is None) == changes


def chained(layers: int):
    """Return a function of residual sums, each of a norm behind two products and much between these; then one row."""

    def function(x, scale, *weights):
        for weight in weights:
            y = weighted_norm(x, scale) @ weight
            for _ in range(12):
                y = (y * 2).tanh()
            x = x + y @ weight
        return weighted_norm(x, scale)[-1:] @ weights[0]

    return function, [torch.randn(64, 64), torch.randn(64), *(torch.randn(64, 64) for _ in range(layers))]


def test_a_change_behind_a_chain_of_sums_needs_no_trial_of_the_whole(compiler, monkeypatch):
    """Check that a change behind a chain of sums needs no trial of the whole graph.

    Inductor put norms of all layers in one kernel: nothing in the region was between them. All was tried again. The
    norms before the last product are in no kernel with the changes, so that they are not in the region now.
    """
    seen, whole = [], []
    estimate = trial.Trials.estimate

    def noted(trials, graph):
        seen.append((len(graph.nodes), estimate(trials, graph)))
        return seen[-1][1]

    monkeypatch.setattr(trial.Trials, "estimate", noted)
    monkeypatch.setattr(
        "bridge.scheduling.hook.change_graph",
        lambda graph, *rest: whole.append(len(graph.nodes)) or change_graph(graph, *rest),
    )
    function, inputs = chained(4)
    with without_cpp():
        compiler(function, backend="bridge")(*inputs)
    assert any("operations work on 1 of 64" in line for line in bridge.report().choices)
    (changed, after), (given, before) = seen
    assert max(changed, given) < whole[0] / 4
    assert after.kernels == before.kernels


def outside_of(part: Graph) -> dict[str, list[str]]:
    """Return what is computed outside of a part, and from which values."""
    nodes = [node for node in part.nodes if str(node.target).startswith("bridge.outside")]
    return {node.name: [source.name for source in node.all_input_nodes] for node in nodes}


def test_values_between_which_others_compute_are_connected_in_a_region():
    def function(x, y):
        z = x.exp().tanh()
        return z.sin().sin().sin() * 2 + y, (z + y.cos().cos()).tanh()

    part = home._part(traced(function, [torch.randn(8, 8)] * 2), {"exp", "tanh", "mul"})
    assert outside_of(part) == {"sin_2": ["tanh"]}
    assert not part.find_nodes(op="call_function", target=aten.sin.default)


def test_what_is_computed_outside_and_read_there_again_stays_in_memory():
    def function(x):
        z = x.exp()
        inner = z.sin()
        return inner.cos(), inner.tan()

    part = home._part(traced(function, [torch.randn(8, 8)]), {"exp", "cos"})
    assert outside_of(part) == {"sin": ["exp"]}
    ends = next(node for node in part.nodes if node.op == "output").all_input_nodes
    assert {node.name for node in ends} == {"exp", "sin", "cos"}


def test_sizes_that_are_symbols_are_not_computed_outside():
    def function(x):
        return x.exp().sin().cos()

    graph = make_fx(function, tracing_mode="symbolic")(torch.randn(8, 6)).graph
    assert not outside_of(home._part(graph, {"exp", "cos"}))


def residual(x, weight):
    """Return a sum of residuals and an exp of its tanh; cos is computed before a product that both wait for."""
    first = x.exp() + 1
    product = first.cos() @ weight
    return (first + product).tanh().exp()


def test_what_comes_before_a_product_that_all_changes_wait_for_is_an_input(monkeypatch):
    monkeypatch.setattr(home, "LARGEST_PART", 1)
    (region,) = changed_regions(*with_sigmoids(traced(residual, [torch.randn(8, 8)] * 2)))
    for part in region[:2]:
        names = [node.name for node in part.nodes if node.op == "placeholder"]
        assert "arg_add" in names
        assert not part.find_nodes(op="call_function", target=aten.cos.default)
        assert part.find_nodes(op="call_function", target=aten.mm.default)


def test_a_region_has_what_is_before_changes_that_read_more_of_it(monkeypatch):
    """Check that a region has what is before changes that read more: its inputs could be in memory for longer."""
    monkeypatch.setattr(home, "LARGEST_PART", 1)
    (region,) = changed_regions(*with_sigmoids_of_more(traced(residual, [torch.randn(8, 8)] * 2)))
    assert all(part.find_nodes(op="call_function", target=aten.cos.default) for part in region[:2])


def test_a_region_of_a_value_to_be_stored_has_what_is_before_it(monkeypatch):
    monkeypatch.setattr(home, "LARGEST_PART", 1)
    graph = traced(residual, [torch.randn(8, 8)] * 2)
    before = copy.deepcopy(graph)
    before.owning_module = graph.owning_module
    graphs.store(next(node for node in graph.nodes if node.name == "add_1"))
    (region,) = changed_regions(before, graph)
    assert all(part.find_nodes(op="call_function", target=aten.cos.default) for part in region[:2])


def test_all_values_of_what_comes_before_the_changes_do(monkeypatch):
    """Check that all values before the changes are outside of a region.

    The weights of OLMoE's experts wait for no product, and their numbers do: the whole graph was tried twice.
    """
    monkeypatch.setattr(home, "LARGEST_PART", 1)

    def function(x, weight):
        values, indices = x.exp().topk(8)
        return (values + x[indices[0]] @ weight).tanh().exp()

    (region,) = changed_regions(*with_sigmoids(traced(function, [torch.randn(8, 8)] * 2)))
    for part in region[:2]:
        assert "getitem" in [node.name for node in part.nodes if node.op == "placeholder"]
        assert not part.find_nodes(op="call_function", target=aten.topk.default)


def test_parts_that_have_changes_of_each_other_are_not_apart(monkeypatch):
    monkeypatch.setattr(home, "LARGEST_PART", 4)
    found = changed_regions(*with_sigmoids(traced(*layered(1, inner=12)), every=6))
    assert found and not any(region.apart for region in found)


def branched(x, weight):
    """Return a sine of a sum; a tanh goes into a product first, and the sum reads what tanh does."""
    first, second = x.exp(), x.cos()
    product = (first.tanh() * 2) @ weight
    return (first + second + product).sin()


def test_what_comes_after_a_product_that_waits_for_all_changes_is_outside(monkeypatch):
    """Check that what comes after a product that waits for all changes is outside.

    The rotary embeddings of DeepSeek-V3's layers share a cosine: a region had those of all layers in it.
    """
    monkeypatch.setattr(home, "LARGEST_PART", 1)
    (region,) = changed_regions(*with_sigmoids(traced(branched, [torch.randn(8, 8)] * 2)))
    for part in region[:2]:
        assert "aten.mm.default" in targets(part) and "aten.sin.default" not in targets(part)
        ends = next(node for node in part.nodes if node.op == "output").all_input_nodes
        assert {node.name for node in ends} == {"add", "mm"}


def test_a_region_has_what_is_after_changes_that_read_more(monkeypatch):
    """Check that a region has what is after changes that read more.

    What they read may now be in a kernel with them, and no longer with what comes after them.
    """
    monkeypatch.setattr(home, "LARGEST_PART", 1)
    (region,) = changed_regions(*with_sigmoids_of_more(traced(branched, [torch.randn(8, 8)] * 2)))
    assert all("aten.sin.default" in targets(part) for part in region[:2])


def test_the_values_of_a_call_that_waits_for_the_changes_are_in_their_region(monkeypatch):
    monkeypatch.setattr(home, "LARGEST_PART", 1)

    def function(x):
        values, indices = (x.tanh() * 2).cummax(-1)
        return values.exp(), indices + 1

    (region,) = changed_regions(*with_sigmoids(traced(function, [torch.randn(8, 8)])))
    for part in region[:2]:
        assert targets(part).count("<built-in function getitem>") == 2
        assert "aten.exp.default" not in targets(part)


def test_what_puts_a_result_in_the_place_of_an_input_is_outside(monkeypatch):
    """Check that copies of results into inputs are outside of a region.

    The static caches of a decoding model are written so: all of DeepSeek-V3 was tried twice.
    """
    monkeypatch.setattr(home, "LARGEST_PART", 1)

    def function(x, y):
        z = x.tanh() + 1
        y.copy_(z)
        return z.exp()

    graph = traced(function, [torch.randn(8, 8)] * 2)
    assert "aten.copy_.default" in targets(graph)
    (region,) = changed_regions(*with_sigmoids(graph))
    for part in region[:2]:
        assert "aten.copy_.default" not in targets(part)
        ends = next(node for node in part.nodes if node.op == "output").all_input_nodes
        assert "add" in {node.name for node in ends}


class Estimated:
    """Stand for trials: what is tried is an estimate."""

    @staticmethod
    def estimate(graph: Estimate) -> Estimate:
        return graph


def part(more: int, times: int = 1, apart: bool = True, memory: int = 0) -> Region:
    """Return a part that needs more kernels after changes, or memory."""
    return Region(Estimate(8, 4), Estimate(8 + memory, 4 + more), times, apart)


@pytest.mark.parametrize(
    ("parts", "worse"),
    [
        ([part(2), part(-1), part(-1)], False),
        ([part(2), part(-1, times=2)], False),
        ([part(2), part(-1)], True),
        ([part(1, times=2), part(-1)], True),
        ([part(1), part(-1, apart=False)], True),
        ([part(1, apart=False), part(-1)], False),
        ([part(-1), part(0, memory=512)], True),
        ([part(-1), part(0, memory=511)], False),  # no block of the allocator's
    ],
)
def test_kernels_are_counted_over_all_parts(parts, worse):
    """Check that kernels are counted over all parts.

    The last norm of HYV4 takes 2 kernels more for one row, and its layers 2 less: all of it was tried again.
    """
    assert _worse_in_parts(["shrink_domains"], parts, Estimated()) == worse


def test_kernels_of_parts_do_not_count_where_none_counts():
    assert not _worse_in_parts(["store_reread"], [part(2)], Estimated())
    assert _worse_in_parts(["store_reread"], [part(-2, memory=512)], Estimated())
