"""Code generation that ends in an error: it is done again, from a new schedule of the same graph."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial

from ..inductor.patches import replace_next_call
from ..inductor.protocols import Graph
from ..inductor.rescheduling import States, containers, current_graph, is_subgraph, schedule_again
from ..inductor.trial import counts_restored
from ..lowering.triton.codegen import draw_alike
from ..support.error_boundary import BUGS

#: Takes the error and the kernel that it came from, if it did; has the block schedule otherwise than before.
Failed = Callable[[Exception, set[str]], contextlib.AbstractContextManager]

#: Of the graph whose code is being generated in this context, and of its subgraphs.
_states: ContextVar[States | None] = ContextVar("bridge_states", default=None)


def generate_again(failed: Failed) -> None:
    """Have the code of the graph that is scheduled generated again where that ends in an error.

    failed: is given the error and the operations of the kernel at fault, and is entered around the new scheduling.
    Subgraphs are generated again with the graph around them, in whose wrapper their code stands.
    """
    graph = current_graph()
    if not is_subgraph(graph):
        states = {graph: containers(graph)}
        replace_next_call(graph.scheduler, "codegen", partial(_codegen, graph, states, failed))
        return
    around = _states.get()
    if around is not None:
        around[graph] = containers(graph)


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
        schedule_again(graph, states)
        draw_alike(graph.scheduler.nodes)  # as in the other half, forward or backward, which Bridge may have fused
        restore_counts()
        return graph.scheduler.codegen()
