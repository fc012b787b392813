"""Results that a kernel writes in the memory of what it reads: Inductor's estimate of a graph's memory counts both.

Inductor decides on it when it generates a kernel's code, after Bridge.  The same questions are asked here of a
schedule, whose kernels run in its order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .layouts import buffer_bytes
from .protocols import Kernel, LoopNode, Schedule
from .schedule import buffers_made, loop_nodes, operation_names, stays_inside


def bytes_in_place(schedule: Schedule) -> list[int]:
    """Return for each kernel the bytes of its results that get the memory of a buffer whose last reader it is."""
    from torch._inductor import config

    if not config.inplace_buffers:
        return [0] * len(schedule)
    steps = {name: step for step, kernel in enumerate(schedule) for name in operation_names(kernel)}
    return [sum(_overwriting(kernel, step, steps)) for step, kernel in enumerate(schedule)]


def _overwriting(kernel: Kernel, step: int, steps: Mapping[str, int]) -> Iterator[int]:
    """Yield the bytes of each result that overwrites an input, which is overwritten once, and not its kernel's own."""
    names, taken = operation_names(kernel), set(buffers_made(kernel))
    for node in loop_nodes(kernel):
        for result in node.get_outputs():
            if not _has_own_memory(result) or stays_inside(kernel.scheduler, result.get_name(), names):
                continue
            inputs = (name for name in _inputs(node) if _is_at_one_index(kernel, name))
            name = next((name for name in inputs if _fits(node, name, result, step, steps, taken)), None)
            if name is not None:
                taken.add(name)
                yield result.mpi_buffer.size_alloc


def _has_own_memory(result: Any) -> bool:
    node = result.node
    return node.should_allocate() and not node.get_inputs_that_alias_output() and not node.get_mutation_names()


def _inputs(node: LoopNode) -> list[str]:
    return list(dict.fromkeys(dep.name for dep in node.read_writes.reads))


def _is_at_one_index(kernel: Kernel, name: str) -> bool:
    """Return True if all nodes of a kernel read a buffer at the same index: else one may read what is overwritten."""
    return len({dep for node in loop_nodes(kernel) for dep in node.read_writes.reads if dep.name == name}) == 1


def _fits(node: LoopNode, name: str, result: Any, step: int, steps: Mapping[str, int], taken: set[str]) -> bool:
    """Return True if a node is the last to read a buffer, reads only the element that it writes, and has its size."""
    from torch._inductor.virtualized import V

    scheduler = node.scheduler
    buffer: Any = scheduler.name_to_donated_buffer.get(name) or scheduler.name_to_buf.get(name)
    if buffer is None or name in taken or not V.graph.wrapper_code.can_reuse(buffer, node):
        return False
    left = [user for user in buffer.users if not _is_done(user.node.get_name(), node, step, steps)]
    if len(left) != 1 or left[0].node is not node or not left[0].can_inplace:
        return False
    return _is_tensor(buffer) and _bytes_of(buffer) == result.mpi_buffer.size_alloc


def _bytes_of(buffer: Any) -> int:
    """Return what is freed with a buffer; of an input that autograd has given away, Inductor plans no memory."""
    return buffer_bytes(buffer.get_name()) if buffer.defining_op is None else buffer.mpi_buffer.size_free


def _is_done(reader: str, node: LoopNode, step: int, steps: Mapping[str, int]) -> bool:
    """Return True if an operation has run when a node of the kernel at `step` does; the graph's end has not."""
    return reader in node.ancestors or steps.get(reader, step) < step


def _is_tensor(buffer: Any) -> bool:
    """Return True for a buffer of one tensor that a kernel makes, and that is no view of an operator's result."""
    from torch._inductor import ir
    from torch._inductor.scheduler import NopKernelSchedulerNode

    if isinstance(buffer.defining_op, NopKernelSchedulerNode):
        return False
    if isinstance(buffer.node.get_output_spec(), (ir.NoneLayout, ir.MultiOutputLayout, ir.MutationLayoutSHOULDREMOVE)):
        return False
    made_by = getattr(buffer.defining_op, "node", None)
    viewed = isinstance(made_by, (ir.FallbackKernel, ir.MultiOutput)) and buffer.node.get_inputs_that_alias_output()
    return not viewed
