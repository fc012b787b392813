"""Has library calls read one buffer of a value, and no copies of it.

The example are three projections of the same windows, which read a value of (windows, 49, 96) as rows, each through a
view of its own.  Inductor pads the strides of such a value when it stores it, and then the rows are no view of the
buffer: each call gets a copy.  A value that `aten.as_strided` reads is stored with the graph's strides instead, and
what is read is a view of it.  So that is what those views become.

Another example is a projection of all tokens but the first, where the number of tokens is symbolic.  Inductor sees that
the rows of (batch, s - 1, 96) lie one after the other if the value is stored, and not if it is still to be computed:
then the call gets a copy.  So the value is stored before the call reads a view of it.  For the call it is stored in any
case, so this needs nothing where Inductor makes no copy.

Inductor chooses the strides of what is so stored later.  A call with a rule of its own for strides, as attention, may
rely on them before: what it reads is left alone.

A kernel that reads such a value, too, may have computed it again, with digits that the buffer has not: then the calls
keep their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch.fx import Graph, Node

from ..inductor import graphs, strides
from ..inductor.graphs import aten
from ..support.error_boundary import attempt


def share_operands(graph: Graph) -> Iterator[str]:
    """Have Inductor store one buffer where it would store several; yields a line about each."""
    for node in list(graph.nodes):
        with attempt(node.name):
            yield from _share_operand(graph, node)


def _share_operand(graph: Graph, node: Node) -> Iterator[str]:
    if not graphs.is_pointwise(node) or not graphs.is_contiguous(node):
        return
    pairs = _read_by_calls(node)
    read = [what for _, what in pairs]
    views = [view for view in dict.fromkeys(read) if view is not node]
    if not views or _loses_digits(node):
        return
    if graphs.has_composed_sizes(node) and not graphs.is_stored(node):
        if any(strides.has_own_rule(call) for call, _ in pairs):
            return
        graphs.store(node)
        yield f"{graphs.place(node)}: stored before {len(read)} library calls read a view of it"
    # What Inductor would pad it counts whenever it is asked: asked last.
    elif len(read) > 1 and graphs.is_padded(node):
        for view in views:
            _take_as_strided(graph, view, node)
        yield f"{graphs.place(node)}: one buffer without padding for {len(read)} library calls"


def _read_by_calls(node: Node) -> list[tuple[Node, Node]]:
    """Return the library calls that read all of a node's value in its order, each with what it reads.

    It is the node itself, or a view of it.
    """
    found = []
    for user in node.users:
        if graphs.is_library_call(user):
            found.append((user, node))
        elif graphs.keeps_order(user) and graphs.same_size(user, node):
            found += _read_by_calls(user)
    return found


def _loses_digits(node: Node) -> bool:
    """Return True if a kernel that computes a node's value again might have more of it than a buffer has."""
    return graphs.is_computed_wider(node) and not graphs.is_rounded(node) and not _only_stored(node)


def _only_stored(node: Node) -> bool:
    """Return True if all that reads a value wants it in memory: library calls, whoever called the graph."""
    ends = (graphs.is_library_call, graphs.is_result)
    return all(
        any(is_end(user) for is_end in ends) or (graphs.is_view(user) and _only_stored(user)) for user in node.users
    )


def _take_as_strided(graph: Graph, view: Node, node: Node) -> None:
    value = graphs.tensor(view)
    with graph.inserting_before(view):
        strided = graph.call_function(aten.as_strided.default, (node, list(value.shape), list(value.stride()), 0))
    strided.meta = dict(view.meta)
    view.replace_all_uses_with(strided)
    graph.erase_node(view)
