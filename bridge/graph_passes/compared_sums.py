"""Finds the sums that a forward and its backward both compute, where the backward asks if the results are equal.

The gradient of a maximum goes to the elements that equal it. The forward saves the maximum, and the backward may
compute the elements again. If the two add up a row in different orders, no element is equal any more, and the gradient
is divided by a count of 0. Inductor adds up in one order in both; so these sums are left to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torch.fx import Graph, Node

from ..inductor import graphs, strides


def mark_compared_sums(graph: Graph) -> None:
    """Mark the sums of a forward or a backward on which an equality in the backward depends."""
    kept = strides.results(graph).kept
    compared = _extrema(kept) if kept else _compared_with_inputs(graph)
    for node in _before(compared, kept):
        if graphs.is_reduction(node) and not graphs.is_extremum(node):
            graphs.leave_sum(node)


def _extrema(kept: Iterable[Node]) -> Iterator[Node]:
    """Yield the maxima and minima that the backward gets, also in another form or dtype."""
    for value in kept:
        source = graphs.without_form(value)
        if graphs.is_extremum(source):
            yield source


def _compared_with_inputs(graph: Graph) -> Iterator[Node]:
    """Yield the equalities of a graph of which one side is an input."""
    for node in graph.nodes:
        if graphs.is_equality(node) and any(map(graphs.is_input, map(graphs.without_form, node.all_input_nodes))):
            yield node


def _before(nodes: Iterable[Node], known: set[Node]) -> Iterator[Node]:
    """Yield what nodes are computed from, up to inputs, library calls and what is known: the backward gets it."""
    waiting = list(nodes)
    seen = set(waiting)
    while waiting:
        for source in waiting.pop().all_input_nodes:
            if source not in seen and source not in known and not graphs.is_library_call(source):
                seen.add(source)
                waiting.append(source)
                yield source
