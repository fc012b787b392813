"""Code generation that ends in an error: it is done again, from a new schedule of the same graph."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial

from ..inductor.graphs import give_notes_back
from ..inductor.patches import replace_next_call
from ..inductor.protocols import Graph
from ..inductor.trial import counts_restored
from ..support.error_boundary import BUGS

#: Takes the error and the kernel that it came from, if it did; has the block schedule otherwise than before.
Failed = Callable[[Exception, set[str]], contextlib.AbstractContextManager]

#: Containers of graphs, by the name of each, as they were before code was generated.
States = dict[Graph, dict[str, object]]

#: Those of the graph whose code is being generated in this context, and of its subgraphs.
_states: ContextVar[States | None] = ContextVar("bridge_states", default=None)


def generate_again(failed: Failed) -> None:
    """Have the code of the graph that is scheduled generated again where that ends in an error.

    failed: is given the error and the operations of the kernel at fault, and is entered around the new scheduling.
    Subgraphs are generated again with the graph around them, in whose wrapper their code stands.
    """
    from torch._inductor.virtualized import V

    graph: Graph = V.graph
    if not hasattr(graph, "parent"):
        states = {graph: _containers(graph)}
        replace_next_call(graph.scheduler, "codegen", partial(_codegen, graph, states, failed))
        return
    around = _states.get()
    if around is not None:
        around[graph] = _containers(graph)


def _codegen(graph: Graph, states: States, failed: Failed, generate: Callable[[], None]) -> None:
    """Generate a graph's code; where that fails, schedule the graph anew and generate it from there."""
    restore_counts, token = counts_restored(), _states.set(states)
    try:
        return generate()
    except BUGS as error:
        bug = error
    finally:
        _states.reset(token)
    kernel = graph.scheduler.current_node
    with failed(bug, set(kernel.get_operation_names()) if kernel is not None else set()):
        _schedule(graph, states)
        restore_counts()
        return graph.scheduler.codegen()


def _containers(graph: Graph) -> dict[str, object]:
    """Return copies of the containers that a graph holds, and None for those that it has not yet."""
    from torch.utils._ordered_set import OrderedSet

    kinds = (list, dict, set, OrderedSet, type(None))
    return {name: copy.copy(value) for name, value in vars(graph).items() if isinstance(value, kinds)}


def _schedule(graph: Graph, states: States) -> None:
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
