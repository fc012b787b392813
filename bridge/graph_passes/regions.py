"""Take the parts of a graph around what was changed, before and after.

A trial of a large graph takes as long as compiling it; of its layers that are alike, one is looked at. What stands
further away is in the same kernels before and after, and the memory that it takes at a time is the same.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Container, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from ..inductor import graphs, trial
from ..inductor.graphs import aten
from ..inductor.outside import computed_outside

#: Operations between what was changed and the end of its region, along any way: those of a norm and what it is of.
HOPS = 12

#: Operations between changes that are looked at together.
NEAR = 3

#: All regions may have this part of a graph's nodes, or the graph is looked at as a whole.
LARGEST_PART = 2 / 3


class Region(NamedTuple):
    """Hold a part of a graph, before and after changes; each is a graph of its own.

    times: the number of parts that are alike; apart: whether none of them has other changes in it than its own.
    """

    before: Graph
    after: Graph
    times: int
    apart: bool


def changed_regions(before: Graph, after: Graph) -> list[Region] | None:
    """Return the parts of a graph around its changes, of those that are alike one.

    None where the whole graph has to be looked at: its parts have not much less, or something in them changes tensors;
    or where no change is seen.
    """
    pair = _Pair(before, after)
    found: dict[str, Region] = {}
    left = LARGEST_PART * min(len(before.nodes), len(after.nodes))
    clusters = list(pair.clusters())
    for changed in clusters:
        names = pair.region(changed)
        if any(map(_prevents_parts, pair.nodes(names))):
            return None
        apart = all(names.isdisjoint(other) for other in clusters if other is not changed)
        region = Region(_part(before, names), _part(after, names), 1, apart)
        key = "\n\n".join(map(_description, region[:2]))
        if key not in found:
            left -= len(names)
        earlier = found.get(key, region._replace(times=0))
        found[key] = region._replace(times=earlier.times + 1, apart=apart and earlier.apart)
        if left < 0:
            return None
    return list(found.values()) or None


class _Pair:
    """Hold a graph before and after changes, whose nodes are known by their names."""

    def __init__(self, before: Graph, after: Graph) -> None:
        self._graphs = [{node.name: node for node in graph.nodes} for graph in (before, after)]

    def nodes(self, names: Iterable[str]) -> list[Node]:
        """Return the nodes of these names, of both graphs."""
        return [graph[name] for name in names for graph in self._graphs if name in graph]

    def clusters(self) -> Iterator[AbstractSet[str]]:
        """Yield the names of nodes that are changed, made or erased, by what is near to each other.

        Values that are computed as before, and stored now, are each apart: the residual sums of a model are neighbours.
        """
        changed = self._changed()
        left = {name for name in changed if not self._is_only_stored(name)}
        yield from ({name} for name in sorted(changed - left))
        while left:
            found, new = set[str](), {min(left)}
            while new:
                found |= new
                new = (self.around(new, NEAR) & left) - found
            left -= found
            yield found

    def region(self, changed: AbstractSet[str]) -> set[str]:
        """Return the names of what is around changed nodes, without what is before or after them in any case.

        No kernel has that together with the changes. Where they read no more of what is before than they did, it is in
        memory for as long as before; where they read no more at all, what is after them is in the same kernels.
        Where values are stored that were not, they stand for others in memory: all is asked.
        """
        left = set[str]()
        if not any(map(self._is_only_stored, changed)):
            earlier, later = self._earlier(changed), self._later(changed)
            left |= earlier if self._reads_no_more(changed, earlier) else set()
            left |= later if self._reads_no_more(changed, self._operations_beside(changed)) else set()
        names = self.around(changed, HOPS, left)
        return names if names.isdisjoint(left) else self.around(changed, HOPS)

    def _reads_no_more(self, changed: AbstractSet[str], names: AbstractSet[str]) -> bool:
        """Return True if changed nodes read nothing of these names that they did not read before."""
        before, after = (_read_of(names, _known(graph, changed)) for graph in self._graphs)
        return after <= before

    def _operations_beside(self, changed: AbstractSet[str]) -> set[str]:
        return {name for graph in self._graphs for name, node in graph.items() if not _is_free(node)} - changed

    def _earlier(self, changed: AbstractSet[str]) -> set[str]:
        """Return the names of nodes, of both graphs, that come before a library call for which all changes wait.

        Changes are operations here: where a view stands is all the same. All values of such a node come with it.
        """
        found = [
            functools.reduce(operator.and_, (waiting[node] for node in _operations(graph, changed)), -1)
            for graph, waiting in zip(self._graphs, self._waited_for, strict=True)
        ]
        if -1 in found:
            return set()
        before = ({name for i, name in enumerate(graph) if bits >> i & 1} for graph, bits in zip(self._graphs, found))
        earlier = set.intersection(*before)
        values = {user.name for node in self.nodes(earlier) for user in node.users if _is_value(user)}
        return (earlier | values) - changed

    def _later(self, changed: AbstractSet[str]) -> set[str]:
        """Return the names of nodes, of both graphs, that wait for a library call after each change.

        One of several values is no operation of its own: it is later where all of them are.
        """
        found = []
        for graph, waiting in zip(self._graphs, self._waited_for, strict=True):
            operations = set(_operations(graph, changed))
            bits = sum(1 << position for position, node in enumerate(graph.values()) if node in operations)
            waits = {node for node in graph.values() if bits and waiting[node] & bits == bits}
            found.append({node.name for node in waits if not _is_value(node) or node.args[0] in waits})
        return set.intersection(*found) - changed

    @functools.cached_property
    def _waited_for(self) -> list[dict[Node, int]]:
        return [_waited_for(graph) for graph in self._graphs]

    def _is_only_stored(self, name: str) -> bool:
        """Return True for a node that is the same in both graphs, but for its value being stored."""
        before, after = (graph.get(name) for graph in self._graphs)
        return before is not None and after is not None and _signature(before) == _signature(after)

    def _changed(self) -> set[str]:
        before, after = self._graphs
        common = before.keys() & after.keys()
        changed = {name for name in common if _differ(before[name], after[name])}
        ends = {name for name in changed if graphs.is_result(after[name])}
        results = [{node.name for end in ends for node in graph[end].all_input_nodes} for graph in self._graphs]
        return (changed - ends) | (before.keys() ^ after.keys()) | (results[0] ^ results[1])

    def around(self, names: AbstractSet[str], hops: int, outside: AbstractSet[str] = frozenset()) -> set[str]:
        """Return names, and those of nodes so many operations away.

        What is in memory ends a way, and so does an input, and what is outside; views are no operations.
        """
        found, new = set(names), set(names)
        for _ in range(hops):
            new = self._next(new) - found - outside
            views = set[str]()
            while more := {name for name in new - views if all(map(_is_free, self.nodes([name])))}:
                views |= more
                new |= self._next(more) - found - outside
            found |= new
            new = {name for name in new if not any(map(_ends_way, self.nodes([name])))}
        return self._with_all_values(found)

    def _with_all_values(self, names: set[str]) -> set[str]:
        """Return names with those of all values of a node that has several: none of them can be given alone."""
        sources = {node.args[0].name for node in self.nodes(names) if _is_value(node)}
        several = [node for node in self.nodes(names | sources) if graphs.tensor(node) is None]
        return names | sources | {user.name for node in several for user in node.users if _is_value(user)}

    def _next(self, names: Iterable[str]) -> set[str]:
        nodes = self.nodes(names)
        return {other.name for node in nodes for other in (*node.users, *node.all_input_nodes) if _computes(other)}


def _known(graph: dict[str, Node], names: Iterable[str]) -> list[Node]:
    """Return those nodes of these names that a graph has."""
    return [graph[name] for name in names if name in graph]


def _read_of(names: AbstractSet[str], readers: Iterable[Node]) -> set[str]:
    """Return those of these names that nodes read, as they are or through views that have none of the names."""
    found, new = set[Node](), {source for reader in readers for source in reader.all_input_nodes}
    while new:
        found |= new
        views = (node for node in new if _is_free(node) and node.name not in names)
        new = {source for view in views for source in view.all_input_nodes} - found
    return {node.name for node in found} & names


def _operations(graph: dict[str, Node], names: Iterable[str]) -> list[Node]:
    return [node for node in _known(graph, names) if not _is_free(node)]


def _waited_for(graph: dict[str, Node]) -> dict[Node, int]:
    """Return for each node what comes before the library calls for which it waits: bits, by position in the graph."""
    before, waited = dict[Node, int](), dict[Node, int]()
    positions = {node: position for position, node in enumerate(graph.values())}
    for node in positions:
        sources = node.all_input_nodes
        waits = ((before if graphs.is_library_call(source) else waited)[source] for source in sources)
        waited[node] = functools.reduce(operator.or_, waits, 0)
        known = (before[source] | 1 << positions[source] for source in sources)
        before[node] = functools.reduce(operator.or_, known, 0)
    return waited


def _computes(node: Node) -> bool:
    """Return True for a node that may be in a region: no input, nor what the graph gives its caller."""
    return not (graphs.is_result(node) or graphs.is_input(node) or _is_put_in_input(node))


def _is_put_in_input(node: Node) -> bool:
    """Return True if a node puts a result in the place of an input, at the end: nothing of the graph reads it there."""
    return node.target is aten.copy_.default and graphs.is_input(node.args[0]) and not node.users


def _is_value(node: Node) -> bool:
    """Return True if a node is one of several values of another."""
    return node.target is operator.getitem


def _is_free(node: Node) -> bool:
    return graphs.is_view(node) or _is_value(node)


def _ends_way(node: Node) -> bool:
    """Return True for a value that is in memory."""
    return graphs.is_made_by_library(node) or graphs.is_stored(node)


def _prevents_parts(node: Node) -> bool:
    """Return True for a node that changes a tensor, which others may read, or that has a graph of its own."""
    known = isinstance(node.target, torch._ops.OpOverload) or _is_value(node)
    return graphs.may_change_tensors(node) or not (known or graphs.tensor(node) is None)


def _differ(before: Node, after: Node) -> bool:
    return graphs.is_stored(before) != graphs.is_stored(after) or _signature(before) != _signature(after)


def _signature(node: Node) -> tuple[Any, ...]:
    """Return what a node computes, and of what, by names."""
    return node.op, node.target, _named(node.args), _named(node.kwargs), _value(node)


def _named(arguments: Any, name: Callable[[Node], str] = operator.attrgetter("name")) -> str:
    return repr(map_arg(arguments, lambda node: _Name(name(node))))


class _Name(str):
    """Stand for a node by its name, which a string among the arguments does not equal."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"%{self}"


def _value(node: Node) -> str:
    """Return what is known of a node's value that decides its code."""
    value = graphs.tensor(node)
    if value is None:
        return str(node.meta.get("val"))
    return f"{value.dtype} {tuple(value.shape)} {value.stride()} {value.device}"


def _part(graph: Graph, names: AbstractSet[str]) -> Graph:
    """Return a graph of the nodes of these names, whose inputs are what they read of others.

    An input that nothing else reads may be freed in it, as in the whole graph; by its name, Inductor knows which.
    The symbols of its inputs' sizes are inputs too: `(s + 1) // 2` does not say what `s` is.
    What is computed from values of the part, outside of it, is so in the graph.
    """
    nodes = list(graph.nodes)
    own = [node for node in nodes if node.name in names]
    read = dict.fromkeys(node for user in own for node in user.all_input_nodes if node.name not in names)
    part = Graph()
    for symbol, size in graphs.sizes_alone(graph, graphs.symbols(read)).items():
        part.placeholder(f"arg_{symbol}").meta["val"] = size
    sources = _sources(nodes, names, read)
    made = {node: _input(part, node, names) for node in read if node not in sources}
    for node in nodes:
        if node in sources:
            made[node] = computed_outside(part, map(made.__getitem__, sources[node]), node)
        elif node.name in names:
            made[node] = part.node_copy(node, made.__getitem__)
    ends = [made[node] for node in nodes if node in made and _is_end(node, names, sources)]
    part.output(tuple(ends))
    return trial.in_own_module(part, graph)


def _sources(nodes: list[Node], names: AbstractSet[str], read: Iterable[Node]) -> dict[Node, list[Node]]:
    """Return for what is read of others the part's own tensors from which it is computed, where there are any."""
    wanted = {node for node in read if graphs.has_number_sizes(node)}
    reached: dict[Node, dict[Node, None]] = {}
    for node in nodes:
        if not wanted:
            break
        wanted.discard(node)
        if node.name not in names:
            found = [{other: None} if other.name in names else reached.get(other, {}) for other in node.all_input_nodes]
            if any(found):
                reached[node] = {source: None for each in found for source in each}
    tensors = {node: [s for s in reached.get(node, {}) if graphs.tensor(s) is not None] for node in read}
    return {node: found for node, found in tensors.items() if found and graphs.has_number_sizes(node)}


def _is_end(node: Node, names: AbstractSet[str], sources: Container[Node]) -> bool:
    """Return True for a value of a part that others read, too."""
    return (node.name in names or node in sources) and any(user.name not in names for user in node.users)


def _input(part: Graph, node: Node, names: AbstractSet[str]) -> Node:
    if node.op == "get_attr":
        return part.node_copy(node)
    held = any(user.name not in names for user in node.users)
    made = part.placeholder(f"arg_{node.name}" if held else node.name)
    made.meta = dict(node.meta)
    return made


def _description(part: Graph) -> str:
    """Return a text that parts have in common if the same code would be made of them."""
    numbers = {node: str(number) for number, node in enumerate(part.nodes)}
    lines = (
        f"{node.op} {'' if graphs.is_input(node) else node.target} {node.name.startswith(('arg', 'primals_'))} "
        f"{_named(node.args, numbers.__getitem__)} {_named(node.kwargs, numbers.__getitem__)} {_value(node)} "
        f"{graphs.is_stored(node)}"
        for node in part.nodes
    )
    return "\n".join(lines)
