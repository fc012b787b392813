"""Finds the values that a forward saves and that its backward could compute again from its inputs.

What is saved is the choice of PyTorch's partitioner, which knows no kernels, and it is not changed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from torch.fx import Graph, Node

from ..inductor import graphs, strides

#: Nodes that a value is computed again by, at most: more are no longer cheap.
MOST_NODES = 64


@dataclass(frozen=True)
class SavedValue:
    """Hold a value that is saved for the backward, and what it can be computed from, without a sum or a library call.

    name: of its node, and of the backward's input; position: among the results of the forward; place: in the user's
    code; saved: names of the saved values that it is computed from; inputs: bytes of the forward's inputs, by name;
    read_again: whether a kernel of the forward reads it from memory, so that it is stored in any case.
    """

    name: str
    position: int
    place: str
    saved: frozenset[str] = frozenset()
    inputs: dict[str, int] = field(default_factory=dict)
    read_again: bool = False


def saved_values(graph: Graph) -> Iterator[SavedValue]:
    """Yield the values that a forward saves for its backward and that can be computed again."""
    saved = strides.results(graph).saved
    for position, node in enumerate(strides.listed_results(graph)):
        if node in saved and not graphs.is_input(node):
            sources = _sources(node, saved)
            if sources:
                yield _described(node, position, sources, saved)


def _sources(node: Node, saved: set[Node]) -> set[Node]:
    """Return the inputs and saved values that a node is computed from by loops alone; none if something else is in it.

    None of a view either: it is in its source's memory.
    """
    found: set[Node] = set()
    waiting, seen = [node], {node}
    while waiting:
        here = waiting.pop()
        if not (graphs.is_pointwise(here) or graphs.is_view(here) or graphs.only_moves(here)) or len(seen) > MOST_NODES:
            return set()
        for source in graphs.tensor_inputs(here):
            if source in saved or graphs.is_input(source):
                found.add(source)
            elif source not in seen:
                waiting.append(source)
                seen.add(source)
    known = all(source in saved or graphs.has_number_sizes(source) for source in found)
    stored = not all(map(graphs.is_view, seen))
    return found if known and stored else set()


def _described(node: Node, position: int, sources: set[Node], saved: set[Node]) -> SavedValue:
    inputs = {source.name: graphs.tensor(source).nbytes for source in sources - saved}
    names = frozenset(source.name for source in sources & saved)
    return SavedValue(node.name, position, graphs.place(node), names, inputs)
