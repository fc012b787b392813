"""Freed buffers that a graph's code keeps to use again later: as many as fit below the peak that it has without.

Inductor keeps one where its estimate of the peak leaves room.  That estimate does not know of kernels that overwrite
their inputs, so a peak of 75 MB may be estimated at 113, and buffers that are kept then make it 113.  Where less is
live, as Bridge's kernels need less, there is more such room: what was spared would become more memory, not less.
Nor does it know of the memory that an operator takes for itself while it runs: a convolution's gradients need a
workspace that may make it the graph's peak, though less is estimated there than elsewhere.  So do matrix products: from
torch 2.15 on their workspace is allocated anew for each, and is live beside what is kept.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from . import loops
from .memory import live_levels
from .patches import replace_next_call
from .protocols import Kernel, Wrapper
from .schedule import launch_parts, loop_nodes

if TYPE_CHECKING:
    from torch._inductor.codegen.wrapper import EfficientPeakEstimate

#: What a matrix product needs for itself while it runs, in bytes: the workspace of cuBLAS on an H100.
WORKSPACE = 32 << 20


def keep_below_peak() -> None:
    """Have the code of the graph that is being compiled keep no buffers above the peak that it has without them."""
    from torch._inductor.virtualized import V

    wrapper = V.graph.wrapper_code
    replace_next_call(wrapper, "memory_plan_reuse", functools.partial(_plan_reuse, wrapper))


def keep_pieces(schedule: Sequence[Kernel]) -> None:
    """Have no kernel of a graph overwrite memory that it reads by several names; Inductor's own may after Bridge's."""
    for launch in schedule:
        for kernel in launch_parts(launch):
            with contextlib.ExitStack() as undo:
                loops.keep_pieces(loop_nodes(kernel), undo)
                undo.pop_all()


def _plan_reuse(wrapper: Wrapper, plan: Callable[[], None]) -> None:
    """Correct the estimate by which Inductor's wrapper decides what to keep, and have it decide."""
    estimate = getattr(wrapper, "estimate_peak", None)  # there is none where buffers are not used again
    if estimate is not None:
        _correct(estimate, wrapper.lines)
    plan()


def _correct(estimate: EfficientPeakEstimate, lines: Sequence[object]) -> None:
    """Take from the estimate what has no memory of its own; lines: the wrapper's, before it plans them."""
    from torch._inductor.codegen.segmented_tree import SegmentedTree

    levels = _levels(lines)
    estimate.overall_peak_memory = max(levels, default=0)
    estimate.segmented_tree = SegmentedTree(levels, operator.add, max, 0)


def _levels(lines: Sequence[object]) -> list[int]:
    """Return the bytes that are live while each kernel runs.

    A result in its input's place, or in registers only, counts nothing.  Operators that allocate are at the peak: what
    they need for themselves is not known, so nothing is kept while they run.  Library calls with a given result have
    their workspace, but are never above the peak: a torch that keeps the workspace needs no more than that.
    """
    from torch._inductor import ir, memory
    from torch._inductor.codegen.wrapper import ReuseLine
    from torch._inductor.virtualized import V
    from torch.utils._ordered_set import OrderedSet

    nodes = V.graph.scheduler.nodes
    inputs, outputs = OrderedSet(V.graph.graph_inputs), OrderedSet(V.graph.get_output_names())
    levels = live_levels(nodes, memory.get_freeable_input_buf(nodes, inputs), outputs)
    without = {line.reused_as.get_name() for line in lines if isinstance(line, ReuseLine)} | {*V.graph.removed_buffers}
    for step, node in enumerate(nodes):
        levels[step] -= sum(b.mpi_buffer.size_alloc for b in node.get_outputs() if b.get_name() in without)
    peak = max(levels, default=0)
    for step, node in enumerate(nodes):
        if isinstance(node.node, ir.ExternKernelAlloc):
            levels[step] = peak
        elif isinstance(node.node, ir.ExternKernelOut):
            levels[step] = min(peak, levels[step] + WORKSPACE)
    return levels
