"""Tell what scheduler nodes read, write and wait for; their buffers and devices."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import sympy
import torch

from .graphs import is_left_sum
from .layouts import NUMBERS, buffer_dtype, buffer_numel, holds_elements, layout_of
from .mixed import buffers_in_workspace, done_by_mixed_kernel
from .protocols import Buffer, Dependency, Kernel, LaunchNode, LoopBody, LoopNode, Scheduler
from .sizes import size_hint, step_along


def is_loop_kernel(node: Kernel) -> bool:
    """Return True for a kernel of emitted pointwise and reduction loops; templates, extern and launches are none."""
    from torch._inductor import ir, scheduler

    if not isinstance(node, (scheduler.SchedulerNode, scheduler.FusedSchedulerNode)):
        return False
    if type(node).__name__ not in ("SchedulerNode", "FusedSchedulerNode", "OuterLoopFusedSchedulerNode"):
        return False
    if node.is_template() or node.is_extern() or node.is_foreach():
        return False
    if any(done_by_mixed_kernel(part) for part in node.get_nodes()):
        return False
    return all(
        isinstance(n, scheduler.SchedulerNode)
        and isinstance(n.node, ir.ComputedBuffer)
        and isinstance(n.node.data, (ir.Pointwise, ir.Reduction))
        for n in node.get_nodes()
    )


def has_stages(kernel: Kernel) -> bool:
    """Return True for loops that Inductor gives stages of, and a code generator of their own: from torch 2.15 on."""
    from torch._inductor import scheduler

    staged = getattr(scheduler, "FusedStagedReduction", None)
    return staged is not None and isinstance(kernel, staged)


def loop_nodes(node: Kernel) -> list[LoopNode]:
    """Return the single scheduler nodes of a kernel, in the order of its code."""
    return list(node.get_nodes())


def node_body(node: LoopNode) -> LoopBody:
    """Return the loop body of a single scheduler node."""
    return node._body


def node_sizes(node: LoopNode) -> tuple[list[sympy.Expr], list[sympy.Expr]]:
    """Return (iteration extents, reduction extents) of a single scheduler node."""
    sizes = node._sizes
    return list(sizes[0]), list(sizes[1])


def elements(node: LoopNode) -> int:
    """Return how many elements the loops of a single scheduler node go over, for typical sizes."""
    return size_hint(_product([size for sizes in node_sizes(node) for size in sizes]))


def _product(sizes: Sequence[sympy.Expr | int]) -> sympy.Expr | int:
    """Return the product of sizes; of numbers as Python's, whose products take no time."""
    numbers = all(isinstance(size, NUMBERS) for size in sizes)
    return math.prod(map(int, sizes)) if numbers else sympy.prod(sizes)


def reduces(kernel: Kernel) -> bool:
    """Return True if a node of a kernel has loops that reduce."""
    return any(node_sizes(node)[1] for node in loop_nodes(kernel))


def mutates_or_aliases(node: Kernel) -> bool:
    """Return True if a kernel writes into, or views, a buffer that it does not own; a slice of a `cat` is its own."""
    return any(
        output.get_mutations() or (output.get_aliases() and not _slices_cat(output)) for output in node.get_outputs()
    )


def only_overwrites(node: Kernel) -> bool:
    """Return True if a kernel only stores into buffers that it does not own: no views, no atomics."""
    if any(o.get_aliases() and not o.get_mutations() and not _slices_cat(o) for o in node.get_outputs()):
        return False
    return not adds_atomically(node)


def adds_atomically(node: Kernel) -> bool:
    """Return True if a kernel of loops adds into memory by atomic operations."""
    accesses = (entry for n in loop_nodes(node) for entries in n._body.memory_usage.values() for entry in entries)
    return any(access.mode is not None for access in accesses)


def overwrites_in_place(node: Kernel) -> bool:
    """Return True if the loops of a kernel store plain values at known places of whole buffers that it does not own.

    Not through a view of another dtype.
    """
    from torch._inductor import ir

    if not only_overwrites(node) or any(isinstance(n.node.data, ir.Scatter) for n in loop_nodes(node)):
        return False
    pairs = [pair for n in loop_nodes(node) for pair in buffers_overwritten(n).items()]
    return all(storage_of(real) is None and buffer_dtype(real) == buffer_dtype(name) for name, real in pairs)


def buffers_overwritten(node: Kernel) -> dict[str, str]:
    """Return the buffers that a kernel stores into and does not own, by the name of their new contents."""
    real = node.scheduler.mutation_real_name
    outputs = [output.get_name() for output in node.get_outputs() if output.get_mutations()]
    return {name: real[name] for name in outputs}


class SharedLaunch:
    """Mark the scheduler node of a launch of Bridge's making; a class of such nodes has it as a base."""

    snodes: list[Kernel]


def launch_parts(node: Kernel | LaunchNode) -> list[Kernel]:
    """Return the kernels that share a launch of Bridge's making; of any other kernel itself."""
    return list(node.snodes) if isinstance(node, SharedLaunch) else [node]


def _slices_cat(output: Buffer) -> bool:
    """Return True if a buffer is a part of a larger one that only its parts write, and nobody reads before all are."""
    from torch._inductor import ir

    return isinstance(output.node, ir.ComputedBuffer) and isinstance(output.node.layout, ir.NonOwningLayout)


def apart_by_user(schedule: Iterable[Kernel]) -> str | None:
    """Return why the user has kernels of a schedule apart: they are on several streams, or memory is of several pools.

    None where all may be together. Torch 2.13 has streams, 2.15 pools.
    """
    scheduler = next((kernel.scheduler for kernel in schedule), None)
    if getattr(scheduler, "_multi_stream_nodes", False):
        return "the graph runs on several streams"
    if getattr(scheduler, "_mempool_nodes", False):
        return "the graph has memory of a pool of the user's"
    return None


def storage_of(name: str) -> str | None:
    """Return the larger buffer that a buffer is a slice of, if it is one."""
    view = _view_of_storage(name)
    return None if view is None else view.get_name()


def written_storage(name: str) -> str:
    """Return the buffer whose memory a store goes to.

    A buffer that is written into has another name after every such store.
    """
    from torch._inductor.virtualized import V

    real = V.graph.scheduler.mutation_real_name.get(name, name)
    return storage_of(real) or real


def offset_in_storage(name: str) -> sympy.Expr:
    """Return the number of elements from the start of a buffer's storage to its own start.

    Not 0 for a slice of a larger buffer.
    """
    view = _view_of_storage(name)
    return sympy.S.Zero if view is None else view.get_layout().offset


def _view_of_storage(name: str) -> Any | None:
    from torch._inductor import ir
    from torch._inductor.virtualized import V

    layout = getattr(V.graph.name_to_buffer.get(name), "layout", None)
    return layout.view if isinstance(layout, ir.NonOwningLayout) else None


def has_masked_parts(node: LoopNode) -> bool:
    """Return True if a part of the loop body is only for some iterations."""
    return bool(node_body(node).subblocks)


def device_of(node: Kernel) -> torch.device:
    """Return the device that a kernel runs on."""
    return node.get_device()


def buffers_read(node: Kernel) -> set[str]:
    """Return the names of the buffers that a kernel reads; it waits for sizes that calls find, and reads none."""
    return {dep.name for dep in node.read_writes.reads if holds_elements(dep.name)}


def inputs_read(node: Kernel) -> set[str]:
    """Return the names of the buffers that a kernel reads, but those of seeds, which every random number needs."""
    from torch._inductor.loop_body import MemoryUsageType

    loads = (own._body.memory_usage.get(MemoryUsageType.LOAD_SEED, ()) for own in loop_nodes(node))
    return buffers_read(node) - {entry.buffer_name for entries in loads for entry in entries}


def draws(node: Kernel) -> bool:
    """Return True if a kernel of loops draws random numbers that are no integers."""
    return any(own._body.has_op(name) for own in loop_nodes(node) for name in ("rand", "randn"))


def readers(node: Kernel) -> set[str]:
    """Return the kernels that read what a kernel writes, by name."""
    kernels = node.scheduler.name_to_fused_node
    users = {user.node.get_name() for output in node.get_outputs() for user in output.users if not user.is_weak}
    return {kernels[name].get_name() for name in users & kernels.keys()}  # what is returned has a user of its own


def subscripts_read(node: Kernel, name: str) -> set[sympy.Expr]:
    """Return the linear addresses at which a node's loop body loads from a buffer."""
    return {dep.index for dep in plain_accesses(node.read_writes.reads) if dep.name == name}


def buffers_written(node: Kernel) -> set[str]:
    """Return the names of the buffers that a kernel writes."""
    return {dep.name for dep in node.read_writes.writes}


def plain_accesses(dependencies: Iterable[Dependency]) -> list[Dependency]:
    """Return those that are loads and stores at a subscript.

    The others have no subscript to ask for: of a whole buffer (a search in it, the order of a kernel that writes in
    place and the readers before it), and of nothing but order.
    """
    from torch._inductor.dependencies import MemoryDep

    return [dependency for dependency in dependencies if isinstance(dependency, MemoryDep)]


def bytes_touched(node: Kernel, together: set[str] | None = None) -> dict[str, int]:
    """Return the bytes of each buffer that a kernel reads from memory or writes to it.

    For typical sizes, and for cost only.

    together: names of the operations of the kernel that it would be in, default its own.
    """
    from torch._inductor.virtualized import V

    touched: dict[str, int] = {}
    names = (together or node.get_operation_names()) - _names_of_dropped(node)
    nowhere = buffers_in_workspace(node)
    points = max(map(elements, loop_nodes(node)))
    real_names = node.scheduler.mutation_real_name  # after a kernel has written into it, a buffer has another name
    for dep in plain_accesses({*node.read_writes.reads, *node.read_writes.writes}):
        if dep.name not in nowhere and not stays_inside(node.scheduler, dep.name, names):
            name = real_names.get(dep.name, dep.name)
            # Inductor takes an indirect index to reach the whole buffer: a cache is written at one position.
            amount = min(V.graph.get_dep_size_hint(dep), points * buffer_dtype(name).itemsize)
            touched[name] = touched.get(name, 0) + amount
    for buffer in _searched(node):
        if not stays_inside(node.scheduler, buffer, names):
            name = real_names.get(buffer, buffer)
            amount = points * elements_of_buffer(name).bit_length() * buffer_dtype(name).itemsize
            touched[name] = touched.get(name, 0) + amount
    whole = {name: elements_of_buffer(name) * buffer_dtype(name).itemsize for name in touched}
    return {name: min(amount, whole[name]) for name, amount in touched.items()}


def _names_of_dropped(node: Kernel) -> set[str]:
    """Return the operations of a kernel that a mix-order kernel does: what they make, the kernel reads from memory."""
    return {part.get_name() for part in node.get_nodes() if done_by_mixed_kernel(part)}


def _searched(node: Kernel) -> set[str]:
    """Return the buffers in which a kernel searches for values; it loads an element of these at each step."""
    from torch._inductor.loop_body import MemoryUsageType

    searches = (own._body.memory_usage.get(MemoryUsageType.BUCKETIZE, ()) for own in loop_nodes(node))
    return {entry.buffer_name for entries in searches for entry in entries}


def elements_of_buffer(name: str) -> int:
    """Return how many elements a buffer has, for typical sizes: a part of each row has none of the others between."""
    return min(size_hint(buffer_numel(name)), size_hint(_product(layout_of(name)[0])))


#: Bytes that memory moves at least, on any GPU of today.
SECTOR = 32

#: As many bytes are moved for one that is stored alone in its sector.  Programs beside it store the others at about the
#: same time: on an H100, 32 MB of float8 took a kernel of rows 80 us more than their bytes, and not 300.
STORED_APART = 8

#: As long as so many bytes takes a load of one whose sector others of the program have, but not of its warp: 33.5
#: million of 2 bytes took a kernel of rows 136 us more than in tiles on an H100.
LOADED_APART = 14

#: As many rows are asked whether they follow each other in memory.
LONGEST_LINE = 64


def bytes_beside(node: Kernel, rows: int = 1) -> int:
    """Return the bytes that a kernel of rows moves and does not use, for typical sizes; for cost only.

    They are around those that it reads or writes in larger steps, along its innermost loop.  rows: how many a program
    has at a time; what is around an element of one may be of another.
    """
    from torch._inductor.virtualized import V

    beside, names = 0.0, node.get_operation_names()
    accesses = {
        dep for one in loop_nodes(node) for dep in plain_accesses({*one.read_writes.reads, *one.read_writes.writes})
    }
    for dep in accesses:
        if not stays_inside(node.scheduler, dep.name, names):
            elements = SECTOR // buffer_dtype(dep.name).itemsize
            fetched = min(innermost_step(dep), elements)  # for one
            used = min(rows, elements // step) if 0 < (step := _step(dep, -2)) < elements else 1
            beside += V.graph.get_dep_size_hint(dep) * max(fetched / used - 1, 0)
    return int(beside)


def bytes_beside_rows(node: Kernel, rows: int, tiled: AbstractSet[str] = frozenset()) -> int:
    """Return the bytes that a kernel whose blocks have `rows` whole rows loads and does not use.

    For typical sizes, and for cost only.

    They are around what it reduces in steps of a sector or more along a row: neighbours in memory are in other rows,
    and those of the same block share a sector.  So are they around what the operations `tiled` read, which do not
    reduce, and had tiles of their own before.  Where no row follows another one in memory, each lane of a warp has a
    sector of its own, which takes longer than its bytes.  Lines that a block's rows are within, as those of an image
    that is rolled by three, are no such: Swin's sum, norm and windows took 110 us less than apart.
    """
    from torch._inductor.virtualized import V

    beside, names = 0.0, node.get_operation_names()
    far = [own for own in loop_nodes(node) if node_sizes(own)[1] or own.get_name() in tiled]
    length = _longest_row(node)
    for dep in {dep for own in far for dep in plain_accesses(own.read_writes.reads)}:
        itemsize = buffer_dtype(dep.name).itemsize
        elements = SECTOR // itemsize
        if innermost_step(dep) >= elements and not stays_inside(node.scheduler, dep.name, names):
            apart = rows > 1 and _is_unseen(line := _line(_places(dep, length))) and line < rows
            moved = max(elements / rows, LOADED_APART / itemsize if apart else 1)
            beside += V.graph.get_dep_size_hint(dep) * (moved - 1)
    return int(beside)


def bytes_beside_stores(node: Kernel, rows: int) -> dict[str, int]:
    """Return the bytes that a kernel whose blocks have `rows` whole rows stores in addition to those that are meant.

    By buffer, for typical sizes, and for cost only.  They are around what it stores in steps of a sector or more along
    a row.
    """
    from torch._inductor.virtualized import V

    names, beside = node.get_operation_names(), Counter[str]()
    length = _longest_row(node)
    stores = {
        dep
        for own in loop_nodes(node)
        for dep in plain_accesses(own.read_writes.writes)
        if not stays_inside(node.scheduler, dep.name, names)
    }
    for dep in stores:
        if innermost_step(dep) * buffer_dtype(dep.name).itemsize >= SECTOR:
            near = _rows_in_sector(dep, rows, length)
            beside[dep.name] += V.graph.get_dep_size_hint(dep) * max(STORED_APART - near, 0) // near
    return +beside


def _longest_row(node: Kernel) -> int:
    """Return the elements of the longest row that a kernel reduces, for typical sizes; 1 where it reduces none."""
    return max((size_hint(_product(node_sizes(own)[1])) for own in loop_nodes(node)), default=1)


def _rows_in_sector(dep: Dependency, rows: int, length: int) -> int:
    """Return how many of a block's rows store their first elements into one sector at a time.

    They need not follow one another: of images in windows those of a line do, and below one another are those that are
    a window's width apart.  But some have to: Triton gives a warp neighbours along a row where it knows of none in
    other rows, as for lines of seven.  length: lanes of a row.
    """
    place = _places(dep, length)
    if _is_unseen(_line(place)):
        return 1
    first, elements = place(0), SECTOR // buffer_dtype(dep.name).itemsize
    return sum(abs(place(row) - first) < elements for row in range(rows))


def _places(dep: Dependency, length: int) -> Callable[[int], int]:
    """Return where the first element of a row is, in elements, by the number of the row; length: lanes of a row."""
    loops, weight = [], 1
    for variable, size in reversed([*zip(dep.var_names, map(size_hint, dep.size), strict=True)]):
        loops.append((variable, weight, size))
        weight *= size

    def place(row: int) -> int:
        lane = {variable: row * length // weight % size for variable, weight, size in loops}
        return size_hint(dep.index.subs(lane))

    return place


def _is_unseen(line: int) -> bool:
    """Return True if Triton knows of no neighbours in other rows, of which so many follow one another in memory."""
    return line % 2 == 1


def _line(place: Callable[[int], int]) -> int:
    """Return how many of the first rows follow one another in memory."""
    first = place(0)
    return next((row for row in range(1, LONGEST_LINE) if place(row) != first + row), LONGEST_LINE)


def innermost_step(dep: Dependency) -> int:
    """Return how many elements the second iteration of the innermost loop accesses after the first."""
    return _step(dep, -1)


def _step(dep: Dependency, loop: int) -> int:
    """Return how many elements the second iteration of a loop accesses after the first; 0 where it is not there."""
    if len(dep.var_names) < abs(loop):
        return 0
    return step_along(dep.index, dep.var_names[loop], set(dep.var_names))


def stays_inside(scheduler: Scheduler, name: str, operations: set[str]) -> bool:
    """Return True if a kernel of the operations makes the buffer, and nothing else uses it."""
    own = name in scheduler.name_to_buf and scheduler.name_to_buf[name].defining_op_name() in operations
    return own and scheduler.can_buffer_be_removed_through_fusion(name, operations)


def buffers_awaited(node: Kernel) -> set[str]:
    """Return the buffers of other kernels that have to be there before this one, for whatever reason."""
    return {dep.name for dep in node.unmet_dependencies}


def result_name(position: int) -> str:
    """Return the name of the buffer that is a result of the graph, by its place among the results."""
    from torch._inductor.virtualized import V

    return str(V.graph.graph_outputs[position].get_name())


def has_left_sums(node: Kernel) -> bool:
    """Return True if a kernel has sums that are to be added up in Inductor's order."""
    nodes = (own.node for own in loop_nodes(node) if own.node is not None)
    return any(is_left_sum(origin) for one in nodes for origin in one.get_origins())


def buffers_made(node: Kernel) -> set[str]:
    """Return the names of the buffers that a kernel makes."""
    return set(node.get_buffer_names())


def operation_names(node: Kernel) -> set[str]:
    """Return the names of a kernel's operations."""
    return set(node.get_operation_names())


def is_inference_graph() -> bool:
    """Return True if the graph that is being compiled is one for inference."""
    from torch._inductor.virtualized import V

    return bool(V.graph.is_inference)


def rounds_at_conversion(device: torch.device) -> bool:
    """Return True if the code rounds at a conversion to a 16-bit float (C++), False if at the store only (Triton)."""
    from torch._inductor import config

    triton = device.type != "cpu" or config.cpu_backend == "triton"
    return not triton


def generates_triton(device: torch.device) -> bool:
    """Return True if Inductor generates Triton for the device."""
    return not rounds_at_conversion(device)
