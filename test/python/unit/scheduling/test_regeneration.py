"""Test what generates a graph's code a second time: from a new schedule, with the graph as it was before the first."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest
from torch._inductor.virtualized import V

from bridge.scheduling.regeneration import generate_again


class Scheduler:
    """Stand for a scheduler whose code is a function's; its current node is a kernel of two operations."""

    nodes = ()  #: none that draws random numbers

    def __init__(self, generate):
        self.generate = generate
        self.current_node = SimpleNamespace(get_operation_names=lambda: ["op1", "op2"])

    def codegen(self):
        return self.generate()


class Graph:
    """Stand for a graph that is scheduled twice; the second schedule's code is "again"."""

    def __init__(self, generate):
        self.scheduler = Scheduler(lambda: generate(self))
        self.lines = ["before"]
        self.removed_buffers, self.removed_operations, self.inplaced_to_remove = {"buf0"}, set(), set()
        self.sizevars = SimpleNamespace(precomputed_replacements={}, inv_precomputed_replacements={})
        self.module = SimpleNamespace(meta={})
        self.wrapper_code = SimpleNamespace(push_codegened_graph=lambda graph: None)

    def init_wrapper_code(self):
        self.lines.append("wrapper")

    def _update_scheduler(self):
        self.scheduler = Scheduler(lambda: "again")


def generated(generate, **attributes):
    """Return (the graph, what its generation gives, what the function for failures was given)."""
    failures = []

    @contextlib.contextmanager
    def failed(error, names):
        failures.append((str(error), names))
        yield

    graph = Graph(generate)
    vars(graph).update(attributes)
    with V.set_graph_handler(graph):
        generate_again(failed)
        return graph, graph.scheduler.codegen(), failures


def fail(graph):
    graph.lines.append("half a kernel")
    raise RuntimeError("no code")


def test_after_an_error_the_new_schedule_generates():
    _, code, failures = generated(fail)
    assert code == "again"
    assert failures == [("no code", {"op1", "op2"})]


def test_the_graph_is_as_it_was_before_the_first_time():
    graph, _, _ = generated(fail)
    assert graph.lines == ["before", "wrapper"]
    assert graph.removed_buffers == set()


def test_what_succeeds_is_done_once():
    graph, code, failures = generated(lambda graph: "first")
    assert (code, failures) == ("first", [])
    assert graph.removed_buffers == {"buf0"}


def test_a_subgraph_is_left_to_the_graph_around_it():
    with pytest.raises(RuntimeError, match="no code"):
        generated(fail, parent=object())
