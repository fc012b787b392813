"""Memory of a schedule, as Inductor estimates it where it orders kernels for the least peak."""

from __future__ import annotations

from typing import Any


def live_bytes(schedule: list[Any]) -> list[tuple[int, int]]:
    """For each kernel (bytes that are live while it runs, of these the bytes of the buffers that it makes)."""
    from torch._inductor import memory
    from torch._inductor.virtualized import V
    from torch.utils._ordered_set import OrderedSet

    if not schedule:
        return []
    scheduler = schedule[0].scheduler
    inputs, outputs = OrderedSet(V.graph.graph_inputs), OrderedSet(V.graph.get_output_names())
    _, freeable = memory.prepare_planning_info(
        schedule, scheduler.name_to_buf, scheduler.name_to_fused_node, inputs, outputs
    )
    _, levels = memory.estimate_peak_memory(schedule, freeable, outputs)
    made = [sum(buffer.mpi_buffer.size_alloc for buffer in kernel.get_outputs()) for kernel in schedule]
    return list(zip(levels, made, strict=False))  # there is one more level, after the last kernel
