"""Test a graph that is scheduled again: the containers that it had before are back, and what was removed is there."""

from types import SimpleNamespace

from torch._inductor.virtualized import V
from torch.fx import Graph as FxGraph
from torch.fx import GraphModule
from torch.utils._ordered_set import OrderedSet

from bridge.inductor import graphs, rescheduling


class Graph:
    """Stand for a graph that is lowered, and record what is asked of it."""

    def __init__(self):
        self.module = GraphModule({}, FxGraph())
        self.buffers, self.names, self.cache, self.count = ["buf0"], OrderedSet(["a"]), None, 3
        self.removed_buffers, self.removed_operations, self.inplaced_to_remove = {"buf0"}, {"op0"}, {"buf1"}
        self.sizevars = SimpleNamespace(precomputed_replacements={1: 2}, inv_precomputed_replacements={2: 1})
        self.calls = []
        self.wrapper_code = SimpleNamespace(push_codegened_graph=lambda graph: graph.calls.append("pushed"))

    def init_wrapper_code(self):
        self.calls.append("wrapper")

    def _update_scheduler(self):
        self.calls.append("scheduled")


def test_containers_are_copies_and_nothing_else():
    graph = Graph()
    found: dict = rescheduling.containers(graph)
    assert {"buffers", "names", "cache", "removed_buffers"} <= found.keys()
    assert not {"count", "module", "sizevars"} & found.keys()
    graph.buffers.append("buf1")
    graph.names.add("b")
    assert found["buffers"] == ["buf0"]
    assert list(found["names"]) == ["a"]
    assert found["cache"] is None


def test_graph_is_scheduled_from_the_state_before_with_nothing_removed():
    graph, subgraph = Graph(), Graph()
    states: dict = {each: rescheduling.containers(each) for each in (graph, subgraph)}
    for each in states:
        each.buffers.append("made by code generation")
        each.cache = {"kernel": 1}
    rescheduling.schedule_again(graph, states)
    for each in states:
        assert (each.buffers, each.cache) == (["buf0"], None)
        assert (each.removed_buffers, each.removed_operations, each.inplaced_to_remove) == (set(), set(), set())
        assert each.sizevars.precomputed_replacements == each.sizevars.inv_precomputed_replacements == {}
    assert (graph.calls, subgraph.calls) == (["wrapper", "scheduled", "pushed"], [])


def test_notes_can_be_taken_again():
    graph = Graph()
    graphs.add_note(graph.module.graph, "note")
    with V.set_graph_handler(graph):
        assert rescheduling.current_graph() is graph
        assert graphs.take_notes() == ["note"]
        states: dict = {graph: rescheduling.containers(graph)}
        rescheduling.schedule_again(graph, states)
        assert graphs.take_notes() == ["note"]


def test_only_a_graph_with_a_parent_is_a_subgraph():
    assert not rescheduling.is_subgraph(Graph())
    assert rescheduling.is_subgraph(SimpleNamespace(parent=Graph()))
