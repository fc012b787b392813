"""Tell which inputs of a backward the user's code holds, so that none of their memory is free after its last reader.

Autograd frees what a forward saved for the backward when nothing reads it any more. What the forward also returns, and
what lies in the memory of its inputs, somebody else may hold until the step has ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

from torch.fx import Graph, Node

from . import graphs, strides

#: By the context that a forward and its backward are compiled in: names of values, which inputs of the backward have.
_held: WeakKeyDictionary[Any, frozenset[str]] = WeakKeyDictionary()


def keep_held(graph: Graph) -> None:
    """Keep for the backward's compilation which values that a forward saves are held by others; nothing in a backward.

    The names are those that the values have before a pass over the graph replaces one.
    """
    context, results = _context(), strides.results(graph)
    if context is not None and results.kept:
        others = set(results.visible) | results.fixed
        _held[context] = frozenset(value.name for value in _lying_with(results.kept, others))


def held_inputs() -> frozenset[str]:
    """Return the names of a backward's inputs that others hold; none for a forward, or if that was not compiled."""
    context = _context()
    return frozenset() if context is None else _held.get(context, frozenset())


def _context() -> Any:
    from torch._guards import TracingContext

    return TracingContext.try_get()


def _lying_with(values: Iterable[Node], others: Iterable[Node]) -> list[Node]:
    """Return the values that lie in the memory of an input of the graph, or of one of the others."""
    memories = set(map(graphs.without_views, others))
    made = {value: graphs.without_views(value) for value in values}
    return [value for value, memory in made.items() if graphs.is_input(memory) or memory in memories]
