"""Code generation that ends in an error: it is done again, from a new schedule of the same graph."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from typing import Any

from ..inductor.graphs import give_notes_back
from ..inductor.trial import counts_restored
from ..support.error_boundary import BUGS

#: Takes the error and the kernel that it came from, if it did; has the block schedule otherwise than before.
Failed = Callable[[Exception, set[str]], contextlib.AbstractContextManager]


def generate_again(failed: Failed) -> None:
    """Has the code of the graph that is scheduled generated again where that ends in an error.

    failed: is given the error and the operations of the kernel at fault, and is entered around the new scheduling.
    Subgraphs are generated again with the graph around them, in whose wrapper their code stands.
    """
    from torch._inductor.virtualized import V

    graph, scheduler = V.graph, V.graph.scheduler
    outermost = graph
    while hasattr(outermost, "parent"):
        outermost = outermost.parent
    states = vars(outermost).setdefault("bridge_states", {})
    states[graph] = _containers(graph)
    if graph is not outermost:
        return
    generate = scheduler.codegen

    def codegen() -> None:
        restore_counts = counts_restored()
        try:
            return generate()
        except BUGS as error:
            bug = error
        kernel = scheduler.current_node
        with failed(bug, set(kernel.get_operation_names()) if kernel is not None else set()):
            _schedule(graph, vars(graph).pop("bridge_states"))
            restore_counts()
            return graph.scheduler.codegen()

    scheduler.codegen = codegen


def _containers(graph: Any) -> dict[str, Any]:
    """Copies of the containers that a graph holds, and the names of those that it has not yet."""
    from torch.utils._ordered_set import OrderedSet

    kinds, known = (list, dict, set, OrderedSet, type(None)), vars(graph).items()
    return {name: copy.copy(value) for name, value in known if isinstance(value, kinds) and name != "bridge_states"}


def _schedule(graph: Any, states: dict[Any, dict[str, Any]]) -> None:
    """Schedules a graph anew, as Inductor does where it generates a graph's code twice.

    states: containers of the graph, and of its subgraphs, before code was generated.
    """
    for changed, state in states.items():
        _reset(changed, state)
    graph.init_wrapper_code()
    graph._update_scheduler()
    graph.wrapper_code.push_codegened_graph(graph)


def _reset(graph: Any, state: dict[str, Any]) -> None:
    vars(graph).update(state)
    for removed in (graph.removed_buffers, graph.removed_operations, graph.inplaced_to_remove):
        removed.clear()
    graph.sizevars.precomputed_replacements.clear()
    graph.sizevars.inv_precomputed_replacements.clear()
    give_notes_back(graph)
