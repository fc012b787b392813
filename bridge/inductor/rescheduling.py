"""Schedule a graph a second time: what it was before its code was generated, and the new schedule."""

from __future__ import annotations

import copy
from typing import TypeAlias

from .graphs import give_notes_back
from .protocols import Graph

#: Containers of graphs, by the name of each, as they were before code was generated.
States: TypeAlias = dict[Graph, dict[str, object]]


def current_graph() -> Graph:
    """Return the graph that is being scheduled."""
    from torch._inductor.virtualized import V

    return V.graph


def is_subgraph(graph: Graph) -> bool:
    """Return True if a graph's code stands in the wrapper of the graph around it."""
    return hasattr(graph, "parent")


def containers(graph: Graph) -> dict[str, object]:
    """Return copies of the containers that a graph holds, and None for those that it has not yet."""
    from torch.utils._ordered_set import OrderedSet

    kinds = (list, dict, set, OrderedSet, type(None))
    return {name: copy.copy(value) for name, value in vars(graph).items() if isinstance(value, kinds)}


def schedule_again(graph: Graph, states: States) -> None:
    """Schedule a graph anew, as Inductor does where it generates a graph's code twice.

    states: containers of the graph, and of its subgraphs, before code was generated.
    """
    for changed, state in states.items():
        _reset(changed, state)
    graph.init_wrapper_code()
    graph._update_scheduler()
    graph.wrapper_code.push_codegened_graph(graph)


def _reset(graph: Graph, state: dict[str, object]) -> None:
    """Put a graph back to a state, with nothing removed from it."""
    vars(graph).update(state)
    for removed in (graph.removed_buffers, graph.removed_operations, graph.inplaced_to_remove):
        removed.clear()
    graph.sizevars.precomputed_replacements.clear()
    graph.sizevars.inv_precomputed_replacements.clear()
    give_notes_back(graph)
