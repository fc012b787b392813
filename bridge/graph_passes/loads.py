"""Find what the kernels to come will load, as far as the graph says it before Inductor lowers it.

Inductor has no code of its own for a pointwise operation: it computes the value wherever it is needed, from what is in
memory, unless something needs it in memory or it would read too many tensors.  Views and pointwise operations are
followed back to the tensors in memory; all that is neither counts as in memory, and so does a part of a tensor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch.fx import Node

from ..inductor import graphs

#: The tensors in memory that a value is computed from.
Loads = frozenset[Node]


@dataclass
class Memory:
    """Hold which values are in memory.  stored: nodes; limits: those of Inductor's choice."""

    stored: set[Node]
    limits: graphs.StoreLimits

    def loads(self, node: Node, known: Mapping[Node, Loads]) -> Loads:
        """Return what a kernel loads for a node's value; known: the same for the nodes before it."""
        return frozenset([node]) if not self.computed_again(node) else inputs_loads(node, known)

    def computed_again(self, node: Node) -> bool:
        """Return True if a node's value is computed where it is needed, as far as is known."""
        return node not in self.stored and (graphs.is_pointwise(node) or node.target in graphs.WHOLE_VIEWS)

    def exact(self, node: Node, known: set[Node]) -> bool:
        """Return True if a node's dtype has all digits that a kernel computes of it.

        known: the nodes before, of which it has.

        Only then is what a store leaves as precise as what Inductor's kernels compute again.
        """
        if not graphs.is_computed_wider(node) or graphs.is_rounded(node):
            return True
        if not self.computed_again(node):
            return node in self.stored or graphs.is_input(node) or graphs.is_made_by_library(node)
        selects = graphs.is_selection(node) or graphs.is_view(node)
        return selects and known.issuperset(graphs.tensor_inputs(node))

    def inductor_stores(self, node: Node, loads: Loads) -> bool:
        """Return True if Inductor will by itself store a value that a kernel would need these loads for."""
        limit = self.limits.reused if len(node.users) > 1 else self.limits.any
        return graphs.is_pointwise(node) and len(loads) > limit


def inputs_loads(node: Node, known: Mapping[Node, Loads]) -> Loads:
    """Return what a kernel loads for a node's inputs; known: the same for the nodes before it."""
    return frozenset().union(*(known.get(source, {source}) for source in graphs.tensor_inputs(node)))


def needed_in_memory(nodes: list[Node]) -> set[Node]:
    """Return the nodes whose values are wanted in memory: by users that are not known to be kernels of loops."""
    needed: set[Node] = set()
    for node in reversed(nodes):
        if any(_wants_memory(user, needed) for user in node.users):
            needed.add(node)
    return needed


def _wants_memory(user: Node, needed: set[Node]) -> bool:
    if graphs.is_view(user):
        return user in needed
    return not graphs.is_pointwise(user) and not graphs.is_reduction(user)


def level(node: Node, levels: Mapping[Node, int]) -> int | None:
    """Count how many library calls lie between a first node and this one's value, on the way that has the most of them.

    levels: the same for the nodes before, the first at 0.  None for a node that does not depend on the first.
    Kernels that read the first at different levels cannot be one: the one waits for a call that waits for the other.
    """
    reached = [levels[source] for source in node.all_input_nodes if source in levels]
    return max(reached) + graphs.is_library_call(node) if reached else None
