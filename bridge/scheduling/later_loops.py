"""Find kernels that get other loops alone only after sums of columns, which may join them as Inductor has them.

In loops over the halves of a row a kernel loads each element once, where rotary embeddings' gradient loads it twice. A
sum of the row's columns is over no halves. In the kernel it saves a launch, and reading again all that it adds up.
"""

from __future__ import annotations

from math import prod

from .. import inductor
from ..horizontal.column_sums import kernels_around
from ..horizontal.independence import find_obstacle
from ..inductor import mixed
from ..inductor.columns import is_column_part
from ..inductor.grouped_sums import grouped_sums
from ..inductor.protocols import Kernel, LoopNode, Schedule
from ..inductor.row_order import adds_up_rows
from ..inductor.sizes import as_extent
from ..support.error_boundary import try_step


def may_have_sums(schedule: Schedule, kernel: Kernel) -> bool:
    """Return True if a kernel nearby adds up columns of as many elements as it has, of what this one has too."""
    if mixed.cannot_mix() is not None or not inductor.generates_triton(inductor.device_of(kernel)):
        return False
    touched = inductor.buffers_read(kernel) | inductor.buffers_written(kernel)
    others = [other for other in kernels_around(schedule, kernel) if other is not kernel and _is_of_loops(other)]
    nodes = [node for other in others for node in inductor.loop_nodes(other)]
    return any(_goes_over_one_of(touched, node) and _adds_up_columns(node) for node in nodes)


def _is_of_loops(kernel: Kernel) -> bool:
    return mixed.is_mixed(kernel) or find_obstacle(kernel) is None


def _goes_over_one_of(names: set[str], node: LoopNode) -> bool:
    """Return True if a node reads one of some buffers that has as many elements as it goes over."""
    elements = inductor.size_hint(as_extent(prod([*map(prod, inductor.node_sizes(node))])))
    read = inductor.buffers_read(node) & names
    return any(inductor.size_hint(inductor.buffer_numel(name)) >= elements for name in read)


def _adds_up_columns(node: LoopNode) -> bool:
    found = try_step(lambda: adds_up_rows(node) or bool(grouped_sums(node)), False)
    return is_column_part(node) or found
