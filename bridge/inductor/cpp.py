"""What Inductor's C++ code generator is going to make of a kernel, found out by a trial."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

from .patches import allocating_nothing
from .protocols import Graph, Kernel
from .trial import apart

#: What code generation changes in a graph: where its code goes, and which buffers have no memory.
_GRAPH_STATE = ("wrapper_code", "device_ops", "device_type", "removed_buffers", "inplaced_to_remove")
_SIZES_STATE = ("precomputed_replacements", "inv_precomputed_replacements")


def comes_apart(kernel: Kernel) -> bool:
    """Return True if a kernel of nodes that share outer loops only will be emitted as a loop nest for each.

    Inductor finds out as it generates the code: what it splits a loop for, to use vectors, has to be the same in all.
    """
    if not hasattr(kernel, "get_outer_nodes"):
        return False
    from torch._inductor import metrics
    from torch._inductor.virtualized import V

    scheduler = kernel.scheduler
    kind: Any = type(scheduler.get_backend(kernel.get_device()))
    backend = kind(scheduler)
    with apart(V.graph.sizevars.shape_env), _same_graph(V.graph), _same_bodies(kernel), _wrapper_aside(V.graph):
        merged = len(metrics.cpp_outer_loop_fused_inner_counts)
        with V.graph.set_current_device(kernel.get_device()):
            backend.codegen_node(kernel)
        return len(metrics.cpp_outer_loop_fused_inner_counts) == merged


@contextlib.contextmanager
def _wrapper_aside(graph: Graph) -> Iterator[None]:
    """Give a graph a wrapper for the code of a kernel that is not in its schedule: it allocates nothing."""
    from torch._inductor.graph import GraphLowering

    GraphLowering.init_wrapper_code(graph)  # a subgraph's own writes to that of the graph around it
    with allocating_nothing(graph.wrapper_code):
        yield


@contextlib.contextmanager
def _same_graph(graph: Graph) -> Iterator[None]:
    """Undo what the block changes in the state of a graph."""
    owners = [(graph, _GRAPH_STATE), (graph.sizevars, _SIZES_STATE)]
    kept = [(owner, name, getattr(owner, name)) for owner, names in owners for name in names]
    for owner, name, value in kept:
        if name != "wrapper_code":  # the block is given another
            setattr(owner, name, copy.copy(value))
    try:
        yield
    finally:
        for owner, name, value in kept:
            setattr(owner, name, value)


@contextlib.contextmanager
def _same_bodies(kernel: Kernel) -> Iterator[None]:
    """Have the block work on copies of the loop bodies' graphs: types are written into them."""
    bodies = [node._body for node in kernel.get_nodes()]
    kept = [(block, block.graph) for body in bodies for block in (body.root_block, *body.subblocks.values())]
    for block, graph in kept:
        block.graph = copy.deepcopy(graph)
    try:
        yield
    finally:
        for block, graph in kept:
            block.graph = graph
