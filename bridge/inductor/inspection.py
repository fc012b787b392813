"""What a recording asks of Inductor."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from .mixed import done_by_mixed_kernel


def is_generated(node: Any) -> bool:
    """Whether Inductor generates the code of a kernel, and does not call a library's or a template's for it."""
    from torch._inductor import scheduler

    kinds = scheduler.SchedulerNode, scheduler.FusedSchedulerNode, scheduler.ForeachKernelSchedulerNode
    if not isinstance(node, kinds) or node.is_template():
        return False
    return not all(done_by_mixed_kernel(part) for part in node.get_nodes())


def watch_kernels(schedule: list[Any], seen: Callable[[str, list[str], str], None]) -> None:
    """Has the code generators of this schedule's devices tell of each kernel: its name, its nodes, its source."""
    scheduler = schedule[0].scheduler
    for device in {node.get_device() for node in schedule if is_generated(node)}:
        backend = scheduler.get_backend(device)
        backend = getattr(backend, "_triton_scheduling", backend)
        backend.define_kernel = _watched(backend.define_kernel, seen)


def _watched(define: Callable, seen: Callable[[str, list[str], str], None]) -> Callable:
    from torch._inductor.utils import Placeholder

    @functools.wraps(define)
    def define_kernel(source: str, nodes: Any, *rest: Any, **keywords: Any) -> str:
        name = define(source, nodes, *rest, **keywords)
        for stands_for_name in (Placeholder.KERNEL_NAME, Placeholder.DESCRIPTIVE_NAME):
            source = source.replace(str(stands_for_name), name)
        # Between the nodes of a Triton kernel stand classes, which say where a loop ends.
        own = [
            part
            for node in nodes
            if hasattr(node, "get_nodes") and not isinstance(node, type)
            for part in node.get_nodes()
        ]
        seen(name, [node.get_name() for node in own], source)
        return name

    return define_kernel


def buffer_shape(name: str) -> list[str]:
    """A buffer's extents, as text."""
    from torch._inductor.virtualized import V

    constant = V.graph.constants.get(name)
    return list(map(str, V.graph.get_buffer(name).get_size() if constant is None else constant.size()))


def node_locations(node: Any) -> list[tuple[str, int]]:
    """The user's source lines of a node: the last frames of the stack traces that tracing kept, each once."""
    traces = [origin.meta.get("stack_trace") or "" for origin in sorted(node.node.get_origins(), key=lambda o: o.name)]
    frames = [re.findall(r'File "([^"]+)", line (\d+)', trace)[-1:] for trace in traces]
    return list(dict.fromkeys((file, int(line)) for last in frames for file, line in last))


def node_location(node: Any) -> tuple[str, int] | None:
    """One of them, or None."""
    return next(iter(node_locations(node)), None)
