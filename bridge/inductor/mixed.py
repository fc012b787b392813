"""Kernels that stand in a schedule and are not emitted: a mix-order kernel does their work.

Inductor computes a reduction of rows and reductions of columns of the same buffer in one kernel, whose partial sums it
adds up itself. The second stages of the column reductions, which were split, it drops while it generates code.
"""

from __future__ import annotations

from typing import Any

from .protocols import LoopNode


def done_by_mixed_kernel(node: LoopNode) -> bool:
    """Return True for the second stage of a split reduction that a mix-order kernel computes to its end."""
    buffers = node.scheduler.name_to_buf
    return any(_is_split_part(buffers[dep.name].defining_op) for dep in node.read_writes.reads if dep.name in buffers)


def _is_split_part(producer: LoopNode | None) -> bool:
    if producer is None:
        return False
    kernel: Any = producer.scheduler.name_to_fused_node.get(producer.get_name())
    # Torch 2.11 and later have the class.
    if type(kernel).__name__ != "FusedMixOrderReductions" or producer not in kernel.node2.get_nodes():
        return False
    return bool(getattr(producer.node, "_split_size", None))
