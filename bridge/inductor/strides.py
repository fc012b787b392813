"""Tell how the tensors of an FX graph lie in memory, and who sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch.fx import Graph, Node
from torch.fx.node import Argument

from . import graphs
from .schedule import result_name


@dataclass(frozen=True)
class Results:
    """Hold the results of a graph, by who sees their strides.

    saved: what the backward alone gets, which AOTAutograd compiles for the strides that there are;
    visible: what the user's code gets, with the strides that Inductor gives it in any case, if it does;
    fixed: of what AOTAutograd may make views by the strides that it knows; kept: what the backward gets, as others may.
    """

    saved: set[Node] = field(default_factory=set)
    visible: dict[Node, Sequence[graphs.Size]] = field(default_factory=dict)
    fixed: set[Node] = field(default_factory=set)
    kept: set[Node] = field(default_factory=set)


def results(graph: Graph) -> Results:
    """Return the results of a forward graph that has a backward; none of them are saved in another graph."""
    from torch._guards import TracingContext

    context = TracingContext.try_get()
    known = context.fw_metadata if context is not None else None
    node = graph.output_node()
    values, visible = listed_results(graph), node.meta.get("user_visible_output_idxs")
    if visible is None or known is None or known.num_symints_saved_for_bw is None or graphs.is_backward(graph):
        return Results()
    saved = range(len(values))[known.tensors_saved_for_backwards_slice]
    if saved.stop + known.num_symints_saved_for_bw > len(values):
        return Results()
    return _by_reader(values, set(saved), set(visible), node.meta.get("original_output_strides") or [])


def kept_buffers() -> frozenset[str]:
    """Return the names of the buffers that the forward being compiled keeps for its backward."""
    from torch._inductor.virtualized import V

    graph = V.graph.module.graph
    kept = results(graph).kept
    return frozenset(result_name(at) for at, value in enumerate(listed_results(graph)) if value in kept)


def listed_results(graph: Graph) -> list[Argument]:
    """Return the results of a graph, in order."""
    given = graph.output_node().args[0]
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _by_reader(
    values: list[Argument], saved: set[int], visible: set[int], orders: Sequence[Sequence[graphs.Size] | None]
) -> Results:
    """Sort results, by their places; orders: the strides that Inductor gives those that are visible."""
    tensors = {at: value for at, value in enumerate(values) if graphs.tensor(value) is not None}
    known = {at: order for at, order in enumerate(orders) if order is not None and at in visible}
    seen = {tensors[at]: order for at, order in known.items() if at in tensors}
    others = {tensors[at] for at in tensors if at not in saved}
    kept = {tensors[at] for at in tensors if at in saved}
    return Results(kept - others, seen, others - seen.keys(), kept)


def has_own_rule(call: Node) -> bool:
    """Return True if Inductor has a rule for the strides of this operator's tensors alone, as for attention.

    Such a rule may take those of a value in memory as they are, though they are chosen later.
    """
    from torch._inductor.lowering import constrain_to_fx_strides, maybe_layout_constraints

    assert isinstance(call.target, torch._ops.OpOverload)
    return maybe_layout_constraints(call.target) not in (None, constrain_to_fx_strides)


def is_dense(value: torch.Tensor) -> bool:
    """Return True if a tensor is known to have each element once, and nothing between them."""
    from torch._prims_common import is_non_overlapping_and_dense_or_false

    return bool(is_non_overlapping_and_dense_or_false(value))


def contiguous(value: torch.Tensor) -> torch.Tensor:
    """Return a fake tensor like another one, contiguous."""
    from torch._inductor.virtualized import V

    with V.fake_mode:
        return torch.empty_like(value, memory_format=torch.contiguous_format)


def same_shape(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return True if two tensors are known to have one shape."""
    pairs = zip(one.shape, other.shape, strict=False)
    return one.dim() == other.dim() and all(graphs.known(mine == theirs) for mine, theirs in pairs)


def same_order(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return True if two tensors of one shape are known to have their elements at the same places of memory."""
    return has_order(one, other.stride())


def has_order(value: torch.Tensor, order: Sequence[graphs.Size]) -> bool:
    """Return True if a tensor is known to have these strides, wherever it has more than one element."""
    sizes = zip(value.shape, value.stride(), order, strict=True)
    return all(graphs.known(size == 1) or graphs.known(mine == theirs) for size, mine, theirs in sizes)


def same_inner(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return True if two tensors of one shape are known to be contiguous along one dimension."""
    sizes = zip(one.shape, one.stride(), other.stride(), strict=True)
    return any(
        graphs.known(mine == 1) and graphs.known(theirs == 1) and not graphs.known(size == 1)
        for size, mine, theirs in sizes
    )
