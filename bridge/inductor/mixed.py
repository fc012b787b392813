"""Kernels that stand in a schedule and are not emitted: a mix-order kernel does their work.

Inductor computes a reduction of rows and reductions of columns of the same buffer in one kernel, whose partial sums it
adds up itself. The second stages of the column reductions, which were split, it drops while it generates code.
"""

from __future__ import annotations

import contextlib
from math import prod
from typing import Any

from .protocols import Kernel, LoopNode

#: The option of Inductor's that has kernels of rows and columns load rows ahead, which torch 2.11 and 2.12 turn off.
_AHEAD = "mix_order_reduction_allow_multi_stages"


def is_mixed(kernel: Kernel) -> bool:
    """Return True for a kernel of reductions of rows and of columns that Inductor has mixed."""
    return type(kernel).__name__ == "FusedMixOrderReductions"  # torch 2.11 and later have the class


def nodes_of_parts(kernel: Any) -> tuple[list[LoopNode], list[LoopNode]]:
    """Return (the nodes over the rows of a mix-order kernel, those that add up its columns)."""
    return list(kernel.node1.get_nodes()), list(kernel.node2.get_nodes())


def cannot_mix() -> str | None:
    """Return why no kernel may leave sums in a workspace; None where they may."""
    from torch._inductor import config
    from torch._inductor.virtualized import V

    if V.graph.cpp_wrapper or V.graph.fx_wrapper:
        return "the wrapper is not Python"
    if config.triton.use_block_ptr or config.triton.use_tensor_descriptor:
        return "blocks have pointers, which do not follow the rows of a program"
    if config.memory_planning:
        return "buffers are planned to be in pools"
    return None if config.triton.mix_order_reduction else "triton.mix_order_reduction is off"


def block_of_mixed_kernel(rows: int, processors: int) -> int:
    """Return how many rows each program of a mix-order kernel has, as Inductor chooses it."""
    from torch._inductor import config

    chosen = config.triton.mix_order_reduction_split_size
    return chosen or min(max(1 << max((rows // (processors * 8)).bit_length() - 1, 0), 16), 128)


def loads_rows_ahead() -> bool:
    """Return True if Inductor's own kernels of rows and columns load rows ahead."""
    from torch._inductor import config

    return bool(getattr(config.triton, _AHEAD, False))


def rows_ahead(ahead: bool) -> contextlib.AbstractContextManager[object]:
    """Have the kernel of rows and columns that is written in the block load rows ahead, or none."""
    from torch._inductor import config

    return config.patch({f"triton.{_AHEAD}": ahead}) if hasattr(config.triton, _AHEAD) else contextlib.nullcontext()


def done_by_mixed_kernel(node: LoopNode) -> bool:
    """Return True for the second stage of a split reduction that a mix-order kernel computes to its end."""
    buffers = node.scheduler.name_to_buf
    return any(
        is_part_of_mixed_kernel(buffers[dep.name].defining_op) for dep in node.read_writes.reads if dep.name in buffers
    )


def is_part_of_mixed_kernel(producer: LoopNode | None) -> bool:
    """Return True for the first stage of a split reduction that a mix-order kernel computes to its end."""
    if producer is None:
        return False
    kernel: Any = producer.scheduler.name_to_fused_node.get(producer.get_name())
    if kernel is None or not is_mixed(kernel) or producer not in kernel.node2.get_nodes():
        return False
    return _is_split(producer)


def can_be_asked(kernel: Any) -> bool:
    """Return True if Inductor can ask whether a kernel mixes orders with another: it takes its split sums for alike.

    Of a kernel that reduces in the first stages of sums alone it asserts that these are of as many rows and columns.
    """
    reducing = [node for node in kernel.get_nodes() if node.is_reduction()]
    if not all(map(_is_split, reducing)):
        return True
    return len({(prod(n.node._original_ranges), prod(n.node._original_reduction_ranges)) for n in reducing}) <= 1


def _is_split(part: Any) -> bool:
    return bool(getattr(part.node, "_split_size", None))


def buffers_in_workspace(kernel: Kernel) -> set[str]:
    """Return the partial sums that a kernel makes, or reads, whose buffers are not there: it has a workspace for them.

    A mix-order kernel that was taken apart for a trial is asked for what it had; no other kernel is told of it then.
    """
    if is_mixed(kernel):
        parts = [part for part in nodes_of_parts(kernel)[1] if _is_split(part)]
        return {name for part in parts for name in part.get_buffer_names()}
    buffers = kernel.scheduler.name_to_buf
    read = {dep.name for dep in kernel.read_writes.reads if dep.name in buffers}
    return {name for name in read if is_part_of_mixed_kernel(buffers[name].defining_op)}
