"""Memory of a schedule, as Inductor estimates it where it orders kernels for the least peak."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableSet
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

from .graphs import TANGENTS
from .held_inputs import held_inputs
from .in_place import bytes_in_place
from .layouts import buffer_bytes
from .patches import replace_next_call
from .protocols import Kernel, Schedule
from .schedule import buffers_read, operation_names, stays_inside

#: What CUDA's caching allocator rounds each request up to: a peak that is higher by less is the same one.  A fused
#: kernel reads the seed of its random numbers, 8 bytes, while it makes its results; apart, the seed may be gone by
#: then.  Gradients of scales, 2 bytes each, are there at the same time if one kernel makes them.
SMALLEST_BLOCK = 512


def live_bytes(schedule: Schedule, in_place: bool = True) -> list[tuple[int, int]]:
    """Return for each kernel (bytes that are live while it runs, of these the bytes of the buffers that it makes).

    in_place: whether what a kernel writes in the place of an input needs no memory; Inductor's estimate does not know.

    What a kernel makes for itself alone has no memory; Inductor's estimate counts it while the kernel runs.  It has a
    backward free the gradients that it is given, which autograd's call holds until it returns, and what the forward
    saved and also returned, which the user's code holds.
    """
    from torch._inductor import memory

    if not schedule:
        return []
    scheduler = schedule[0].scheduler
    kernels, inputs, outputs = scheduler.name_to_fused_node, *_ends()
    inputs -= {name for name in inputs if name.startswith(TANGENTS)} | held_inputs()
    _, freeable = memory.prepare_planning_info(schedule, scheduler.name_to_buf, kernels, inputs, outputs)
    _count_wholes_once(schedule)
    _count_elements_once(freeable)
    found = []
    levels = live_levels(schedule, freeable, outputs)
    spared = bytes_in_place(schedule) if in_place else [0] * len(schedule)
    # There is one more level, after the last kernel.
    for kernel, level, overwriting in zip(schedule, levels, spared, strict=False):
        names = operation_names(kernel)
        made = {buffer.get_name(): buffer.mpi_buffer.size_alloc for buffer in kernel.get_outputs()}
        inside = sum(size for name, size in made.items() if stays_inside(scheduler, name, names))
        found.append((level - inside - overwriting, sum(made.values()) - inside))
    return found


def live_levels(schedule: Schedule, freeable: dict[str, Any], outputs: AbstractSet[str]) -> list[int]:
    """Return the bytes that are live while each kernel runs, and after the last one, by Inductor's estimate.

    freeable: inputs that the graph may free, by name; outputs: names.
    """
    from torch._inductor import memory

    _, levels = memory.estimate_peak_memory(schedule, freeable, outputs)
    if hasattr(memory, "peak_memory_from_buf_info_list"):
        return levels
    # An older torch frees the outputs, whose last step is -1, before the first kernel.
    timeline, *_ = memory.compute_memory_timeline(schedule, freeable, outputs)
    freed = sum(buffer.size_free for buffer in timeline if buffer.end_step == -1)
    return [level + freed for level in levels]


def _count_wholes_once(schedule: Schedule) -> None:
    """Have the first piece of a concatenation make the memory of all of it, and the last reader of the whole free it.

    Inductor's estimate has each piece and the whole make memory of their own.
    """
    begun = set()
    for buffer in (buffer for kernel in schedule for buffer in kernel.get_outputs()):
        whole = _whole(buffer)
        if whole is None:
            continue
        buffer.mpi_buffer.size_alloc = 0 if whole in begun else whole.mpi_buffer.size_free
        buffer.mpi_buffer.size_free = whole.mpi_buffer.size_alloc = 0
        begun.add(whole)


def _count_elements_once(freeable: dict[str, Any]) -> None:
    """Have each input be as large as it is.

    Inductor's estimate has the iterations of one read: several an element, or those of one piece of several.
    """
    for name, buffer in freeable.items():
        held = buffer.mpi_buffer
        if held.size_free:  # what has no size is no tensor
            held.size_free = buffer_bytes(name)


def _whole(buffer: Any) -> Any:
    """Return what a buffer is a piece of; None for one with memory of its own."""
    from torch._inductor.ir import NonOwningLayout

    whole = buffer
    while whole is not None and isinstance(whole.node.layout, NonOwningLayout):
        whole = buffer.scheduler.name_to_buf.get(whole.node.layout.view.get_name())
    return None if whole is buffer else whole


def bytes_held(kernel: Kernel) -> int:
    """Return the most that a kernel can need: what it reads and makes; of a schedule that `live_bytes` has seen."""
    from torch._inductor.virtualized import V

    buffers, reads = kernel.scheduler.name_to_buf, kernel.read_writes.reads
    made = sum((_whole(buffer) or buffer).mpi_buffer.size_free for buffer in kernel.get_outputs())
    read = sum(buffers[name].mpi_buffer.size_free for name in buffers_read(kernel) & buffers.keys())
    return made + read + sum(V.graph.get_dep_size_hint(dep) for dep in reads if dep.name not in buffers)


def peak_bytes(schedule: Schedule, in_place: bool = True) -> int:
    """Return the most that is live at a time, with the kernels in this order; in_place: as of `live_bytes`."""
    return max((level for level, _ in live_bytes(schedule, in_place)), default=0)


def estimated_peak(schedule: Schedule, own: int | None = None) -> int:
    """Return the most that is live at a time in the order that Inductor is going to give the kernels, or in this one.

    The less of the two: where Inductor's order is no better by this count, it may take it all the same.
    own: bytes that are live at a time in this order, where that has been counted.
    """
    own = peak_bytes(schedule) if own is None else own
    return min(own, peak_bytes(_in_inductors_order(schedule))) if _is_ordered(schedule) else own


def in_order_of_least_peak(schedule: Schedule) -> Schedule:
    """Return the kernels in the order that Inductor is going to give them; as they are, where that is no worse."""
    if not _is_ordered(schedule):
        return schedule
    ordered = _in_inductors_order(schedule)
    return ordered if peak_bytes(ordered) < peak_bytes(schedule) else schedule


def _is_ordered(schedule: Schedule) -> bool:
    """Return True if Inductor is going to order kernels for the least peak."""
    from torch._inductor import config

    return bool(schedule) and config.reorder_for_peak_memory


def _in_inductors_order(schedule: Schedule) -> Schedule:
    from torch._inductor import memory

    scheduler = schedule[0].scheduler
    known = scheduler.name_to_buf, scheduler.name_to_fused_node
    return memory.reorder_for_peak_memory(schedule, *known, *_ends())


def keep_order_below(schedule: Schedule, most: int) -> None:
    """Have the kernels stay in this order where the one that Inductor gives them needs more memory than that.

    most: bytes.  Inductor chooses by an estimate that has pieces and inputs larger than they are, so what it takes for
    the better order may be the worse one.  Where it orders collectives after that, for overlap, its order stays.
    """
    from torch._inductor import config
    from torch._inductor.utils import is_collective

    nodes: Iterator[Any] = (node for kernel in schedule for node in kernel.get_nodes())
    if schedule and config.reorder_for_peak_memory and not any(is_collective(node.node) for node in nodes):
        scheduler = schedule[0].scheduler
        replace_next_call(scheduler, "process_grouped_nodes", partial(_choose_order, schedule, most))


def _choose_order(schedule: Schedule, most: int, process: Callable[[], None]) -> None:
    """Put a scheduler's kernels back in their order; process: the scheduler's method that comes after ordering them."""
    from torch._inductor import memory

    scheduler = schedule[0].scheduler
    if scheduler.nodes != schedule and set(scheduler.nodes) == set(schedule):
        if most < peak_bytes(scheduler.nodes) > peak_bytes(schedule):
            scheduler.nodes = list(schedule)
        # The sizes that Inductor counted with, by which it decides what to keep for later.
        known = scheduler.name_to_buf, scheduler.name_to_fused_node
        memory.prepare_planning_info(scheduler.nodes, *known, *_ends())
    process()


def _ends() -> tuple[MutableSet[str], AbstractSet[str]]:
    """Return the names of the graph's inputs and of its outputs."""
    from torch._inductor.virtualized import V
    from torch.utils._ordered_set import OrderedSet

    return OrderedSet(V.graph.graph_inputs), OrderedSet(V.graph.get_output_names())
