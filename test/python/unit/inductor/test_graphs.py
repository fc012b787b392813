"""Test what nodes of an FX graph are to the code generators, and the notes that passes leave in a graph."""

from types import SimpleNamespace

import pytest
import torch
from torch._inductor import config
from torch._inductor.virtualized import V
from torch.fx import Graph as FxGraph
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from bridge.inductor import graphs

aten = torch.ops.aten


@pytest.fixture
def call():
    """Return a function that adds a call of an operator on one input of 4 by 6 elements to a graph."""
    graph = FxGraph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.empty(4, 6, device="meta")

    def add(target, *args, **kwargs):
        node = graph.call_function(target, (x, *args), kwargs)
        node.meta["val"] = target(x.meta["val"], *args, **kwargs)
        return node

    return add


def test_kinds_of_nodes(call):
    def kinds(node):
        return [k.__name__ for k in (graphs.is_pointwise, graphs.is_reduction, graphs.is_view) if k(node)]

    assert kinds(call(aten.sin.default)) == ["is_pointwise"]
    assert kinds(call(aten.sum.dim_IntList, [1])) == ["is_reduction"]
    assert kinds(call(aten.permute.default, [1, 0])) == ["is_view"]
    assert kinds(call(aten.rand_like.default)) == []


def test_permuted_elements_are_in_another_order(call):
    assert graphs.keeps_order(call(aten.view.default, [24]))
    assert not graphs.keeps_order(call(aten.permute.default, [1, 0]))
    assert not graphs.keeps_order(call(aten.slice.Tensor, 0, 1, 3))


@pytest.mark.parametrize(
    ("dimensions", "keep", "reduced"), [([-1], False, {1}), ([0, 1], True, {0, 1}), ([], False, {0, 1})]
)
def test_reduced_dimensions_count_from_the_first(call, dimensions, keep, reduced):
    node = call(aten.sum.dim_IntList, dimensions, keep)
    assert graphs.reduced_dimensions(node) == reduced
    assert graphs.keeps_dimensions(node) is keep


def test_argument_left_out_is_the_default_of_the_schema(call):
    assert graphs.argument(call(aten.sum.dim_IntList, [1]), "keepdim") is False
    assert graphs.argument(call(aten.sum.dim_IntList, [1], dtype=torch.float64), "dtype") is torch.float64
    assert graphs.argument(call(aten.sin.default), "keepdim") is None


def test_place_names_the_last_frame(call):
    node = call(aten.sin.default)
    assert graphs.place(node) == node.name
    node.meta["stack_trace"] = '  File "/a/first.py", line 3, in f\n  File "/a/last.py", line 12, in g\n'
    assert graphs.place(node) == f"{node.name} (last.py:12)"


def test_a_cell_of_a_notebook_is_called_so():
    """Check that a cell of a notebook is named so: ipykernel gave it a number, 2738416257.py:3."""
    assert graphs.short_place("/tmp/ipykernel_812/2738416257.py", 3) == "cell:3"
    assert graphs.short_place("/a/model.py", 3) == "model.py:3"


def test_layers_are_named_by_their_list_and_number(call):
    """Check that layers are those of the outermost list, in the graph's order, each once; others have none."""
    for *modules, _ in (
        ("L['self'].layers.1", "L['self'].layers.1.experts.7", ""),
        ("L['self'].norm", ""),
        ("L['self'].model.layers.2.mlp", ""),
        ("L['self'].layers.1.mlp", ""),
    ):
        node = call(aten.sin.default)
        node.meta["nn_module_stack"] = {str(i): (path, torch.nn.Module) for i, path in enumerate(modules)}
    assert graphs.layers(node.graph) == ("layers.1", "layers.2")


def test_notes_are_taken_once_and_again_after_they_are_given_back():
    module = GraphModule({}, FxGraph())
    graphs.add_note(module.graph, "first")
    graphs.add_note(module.graph, "second")
    lowering = SimpleNamespace(module=module)
    with V.set_graph_handler(lowering):
        assert graphs.take_notes() == ["first", "second"]
        graphs.give_notes_back(lowering)
        assert graphs.take_notes() == ["first", "second"]
        assert graphs.take_notes() == []


def test_limit_of_the_cpu_is_not_that_of_other_devices():
    if not hasattr(config, "realize_cpu_acc_reads_threshold"):
        pytest.skip("torch has one limit for all devices")
    with config.patch(realize_reads_threshold=3, realize_acc_reads_threshold=None, realize_cpu_acc_reads_threshold=5):
        assert graphs.store_limits(torch.device("cpu")) == (3, 5)
        assert graphs.store_limits(torch.device("cuda")) == (3, config._realize_acc_reads_threshold_default)
    with config.patch(realize_acc_reads_threshold=7):
        assert graphs.store_limits(torch.device("cpu")).any == 7


@pytest.mark.parametrize(
    ("noted", "apart"), [(None, False), ({"other": 1}, False), ({"stream": 0}, True), ({"mempool": 2}, True)]
)
def test_nodes_on_a_stream_or_in_a_pool_are_apart(noted, apart):
    graph = FxGraph()
    graph.output(graph.placeholder("x"))
    if noted is not None:
        next(iter(graph.nodes)).meta["custom"] = noted
    assert graphs.apart_by_user(graph) is apart


@pytest.mark.parametrize(
    "dtype, device, selected",
    [
        (torch.float16, "cpu", True), (torch.uint8, "cpu", True), (torch.uint32, "cpu", False),
        (torch.float8_e5m2, "cpu", False), (torch.uint32, "meta", True), (torch.complex64, "meta", False),
    ],
)  # fmt: skip
def test_numbers_that_code_selects_between(dtype, device, selected):
    assert graphs.may_be_selected(torch.empty(2, dtype=dtype, device=device)) is selected


def test_a_symbol_has_a_size_that_is_nothing_else():
    """Check that a symbol is found as a size that is only that symbol; a graph may lack one.

    Sizes may be `(s + 1) // 2` and `s`.
    """
    function = make_fx(lambda x: x.chunk(2)[0] + 1, tracing_mode="symbolic")
    nodes = list(function(torch.randn(8, 6)).graph.nodes)
    last = next(node for node in nodes if node.target is aten.add.Tensor)
    rows = graphs.tensor(nodes[0]).shape[0]
    assert rows.node.expr in graphs.symbols([last]) and graphs.tensor(last).shape[0].node.expr != rows.node.expr
    found = graphs.sizes_alone(nodes[0].graph, graphs.symbols([last]))
    assert found.keys() == graphs.symbols([last])
    assert all(size.node.expr == symbol for symbol, size in found.items())
    alone = FxGraph()
    alone.placeholder("half").meta = dict(last.meta)
    assert rows.node.expr not in graphs.sizes_alone(alone, {rows.node.expr})


def test_rows_of_a_part_of_symbolic_length_are_seen_where_a_row_is_a_number():
    def function(x):
        whole, part = x + 1, x.chunk(2)[1] + 1
        return whole.sum(-1), part.sum(-1), part.sum(0)

    def seen(sizes: torch.Tensor) -> list[bool]:
        nodes = make_fx(function, tracing_mode="symbolic")(sizes).graph.nodes
        return [graphs.reduces_all_seen(node) for node in nodes if node.target is aten.sum.dim_IntList]

    assert seen(torch.randn(8, 6)) == [True, False, False]
    assert seen(torch.randn(8, 1)) == [True, True, True]


def test_sizes_that_are_sums_are_composed():
    function = make_fx(lambda x: (x[1:] + 1, x + 1, x[:3] + 1), tracing_mode="symbolic")
    nodes = [node for node in function(torch.randn(8, 6)).graph.nodes if node.target is aten.add.Tensor]
    assert [graphs.has_composed_sizes(node) for node in nodes] == [True, False, False]


def test_frames_of_a_trace_are_looked_for_once():
    trace = 'File "/models/once.py", line 3, in forward'
    before = graphs.users_frame.cache_info()
    assert [graphs.users_frame(trace), graphs.users_frame(str(trace.encode(), "ascii"))] == [("/models/once.py", 3)] * 2
    assert graphs.users_frame(trace.replace("3", "4")) == ("/models/once.py", 4)
    after = graphs.users_frame.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (2, 1)
