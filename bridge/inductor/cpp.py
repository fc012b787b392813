"""Find out by a trial what Inductor's C++ code generator is going to make of a kernel."""

from __future__ import annotations

import contextlib
import copy
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import sympy
import torch

from .layouts import buffer_dtype
from .patches import allocating_nothing, replace_next_call
from .protocols import CppProxy, Graph, Kernel, LoopBody, LoopNode
from .schedule import loop_nodes, node_body
from .sizes import linear_step, size_hint
from .trial import apart

#: Inductor's method that compares the outer loops of the nodes that it is about to write into one loop nest.
COMPARES_LOOPS = "check_outer_fusion_loop_level_attr"

#: What code generation changes in a graph: where its code goes, and which buffers have no memory.
_GRAPH_STATE = ("wrapper_code", "device_ops", "device_type", "removed_buffers", "inplaced_to_remove")
_SIZES_STATE = ("precomputed_replacements", "inv_precomputed_replacements")


#: Types that C++ code reduces in; results of others are converted where they are stored.
_REDUCED_IN = (torch.float32, torch.float64, torch.int64)


def comes_apart(kernel: Kernel) -> bool:
    """Return True if a kernel of nodes that share outer loops only will be emitted as a loop nest for each.

    Inductor finds out as it generates the code: what it splits a loop for, to use vectors, has to be the same in all.
    """
    if not hasattr(kernel, "get_outer_nodes"):
        return False
    from torch._inductor import metrics

    keep_each_row([kernel])
    merged = len(metrics.cpp_outer_loop_fused_inner_counts)
    with _generated(kernel):
        return len(metrics.cpp_outer_loop_fused_inner_counts) == merged


def declares_twice(kernel: Kernel) -> bool:
    """Return True if Inductor's C++ code for a kernel would declare a name twice in one block, and not compile.

    It names a vector of sums that it has converted, to 16 bits say, after the sums, and two nodes of one kernel may
    store the same ones.  Kernels of its own have that, too.  Torch 2.11 - 2.15 do so.
    """
    converted = [node for node in loop_nodes(kernel) if node.is_reduction() and _is_converted(node)]
    if len(converted) < 2:
        return False
    with _generated(kernel) as code:
        blocks = re.split(r"[{}]", code)
    declared = [re.findall(r"^ *auto (\w+) =", block, re.MULTILINE) for block in blocks]
    return any(len(names) > len(set(names)) for names in declared)


def _is_converted(node: LoopNode) -> bool:
    return any(buffer_dtype(name) not in _REDUCED_IN for name in node.get_buffer_names())


@contextlib.contextmanager
def _generated(kernel: Kernel) -> Iterator[str]:
    """Give the loops of the C++ code for a kernel, which is generated for a trial, while its traces are there."""
    from torch._inductor.virtualized import V

    scheduler = kernel.scheduler
    kind: Any = type(scheduler.get_backend(kernel.get_device()))
    backend = kind(scheduler)
    with apart(V.graph.sizevars.shape_env), _same_graph(V.graph), _same_bodies(kernel), _wrapper_aside(V.graph):
        with V.graph.set_current_device(kernel.get_device()):
            backend.codegen_node(kernel)
        yield backend.kernel_group.loops_code.getvalue()


#: Extents that are multiples of it end with a whole vector, of whatever the CPU has.
MOST_LANES = 64


def writes_beyond_its_end(kernel: Kernel) -> bool:
    """Return True if Inductor's C++ code for a kernel may store lanes that a loop of it does not have.

    Where elements are neighbours along what is reduced, and others along a loop around it, Inductor has tiles of two
    dimensions. It stores a whole vector of results then, also of fewer iterations, if yet another loop is between the
    two. Its own loops are in the order of what they store. Torch 2.11 - 2.15 do so.
    """
    return any(_tiles_around_another(node_body(node)) for node in loop_nodes(kernel))


def _tiles_around_another(body: LoopBody) -> bool:
    kept, reduced = body.iter_vars, body.reduce_vars
    between = [variable for variable in kept if body.var_ranges[variable] != 1]
    if not reduced or len(between) < 2:
        return False
    steps = [
        {v: linear_step(sympy.sympify(index), v) for v in (*kept, *reduced)} for index in body.indexing_exprs.values()
    ]
    along = [v for v in between[:-1] if any(step[v] == 1 for step in steps)]
    tiled = any(step[reduced[-1]] == 1 for step in steps)
    return tiled and any(size_hint(body.var_ranges[variable]) % MOST_LANES for variable in along)


def keep_each_row(kernels: Iterable[Kernel]) -> None:
    """Have C++ kernels of common outer loops come apart where one row would be kept of several.

    Inductor keeps what such nodes hand on in a buffer of one iteration of the outer loops, also where it splits one of
    those into vectors: what is read then is the last row of each vector.  Torch 2.11 - 2.15 do so.
    """
    for kernel in kernels:
        if hasattr(kernel, "get_outer_nodes"):
            replace_next_call(kernel, COMPARES_LOOPS, each_row_is_kept)


def each_row_is_kept(compare: Callable[..., bool], proxies: Sequence[CppProxy], depth: int) -> bool:
    """Stand for Inductor's method: False, for loops of their own, also where vectors share a buffer of one row."""
    from torch._inductor.virtualized import V

    local = getattr(V.local_buffer_context, "local_buffers", None)
    outer = [level for proxy in proxies for level in proxy.loop_nest.loops[:depth]]
    return compare(proxies, depth) and not (local and any(level.steps != 1 for level in outer))


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
