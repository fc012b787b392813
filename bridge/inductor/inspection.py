"""Answer what diagnostics ask of Inductor: the source of its kernels, the shapes of buffers, the user's lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from .derived import derive_code_generator
from .graphs import short_place, users_frame
from .layouts import laid_out_as
from .mixed import done_by_mixed_kernel
from .protocols import Kernel, LoopNode, Schedule

#: Takes a kernel's name, the names of its nodes, and its source.
Seen: TypeAlias = Callable[[str, list[str], str], None]


def is_generated(kernel: Kernel) -> bool:
    """Return True if Inductor generates the code of a kernel, and does not call a library's or a template's for it."""
    from torch._inductor import scheduler

    kinds = scheduler.SchedulerNode, scheduler.FusedSchedulerNode, scheduler.ForeachKernelSchedulerNode
    if not isinstance(kernel, kinds) or kernel.is_template():
        return False
    return not all(done_by_mixed_kernel(part) for part in kernel.get_nodes())


def loop_nests(kernel: Kernel) -> int:
    """Count the loop nests that Inductor may make of a kernel: one, but for nodes of C++ that share outer loops only.

    Whether they share these in the code as well it finds out as it writes it.
    """
    if not is_generated(kernel):
        return 0
    return len(kernel.get_outer_nodes()) if hasattr(kernel, "get_outer_nodes") else 1


def watch_kernels(schedule: Schedule, seen: Seen) -> None:
    """Have the code generators of this schedule's devices tell of each kernel: its name, its nodes, its source.

    They go on telling who asked before.
    """
    scheduler = schedule[0].scheduler
    for device in {kernel.get_device() for kernel in schedule if is_generated(kernel)}:
        derive_code_generator(scheduler, device, _WatchedMixin).bridge_seen += (seen,)


class _WatchedMixin:
    """Tell of the kernels that a code generator defines."""

    bridge_seen: tuple[Seen, ...] = ()

    def define_kernel(self, source: str, nodes: Iterable[object], *rest: object, **keywords: object) -> str:
        """Define a kernel, tell of it, and return its name."""
        name = super().define_kernel(source, nodes, *rest, **keywords)  # type: ignore[misc]
        for seen in self.bridge_seen:
            seen(name, _node_names(nodes), _with_name(source, name))
        return name


def _with_name(source: str, name: str) -> str:
    """Return a kernel's source with its name in the place of what stands for it until it is known."""
    from torch._inductor.utils import Placeholder

    for stands_for_name in (Placeholder.KERNEL_NAME, Placeholder.DESCRIPTIVE_NAME):
        source = source.replace(str(stands_for_name), name)
    return source


def _node_names(nodes: Iterable[object]) -> list[str]:
    """Return the names of the loop nodes; between those of a Triton kernel stand classes, which end its loops."""
    kernels = (node for node in nodes if hasattr(node, "get_nodes") and not isinstance(node, type))
    return [part.get_name() for kernel in kernels for part in kernel.get_nodes()]


def buffer_shape(name: str) -> list[str]:
    """Return a buffer's extents, as text."""
    from torch._inductor.virtualized import V

    name = laid_out_as(name)
    constant = V.graph.constants.get(name)
    return list(map(str, V.graph.get_buffer(name).get_size() if constant is None else constant.size()))


def node_locations(node: LoopNode) -> list[tuple[str, int]]:
    """Return the user's source lines of a node, each once: the last frames that tracing kept and that are not torch's.

    Where all are torch's own, the last.
    """
    return _places(_origins(node))


def _places(origins: list[Any]) -> list[tuple[str, int]]:
    frames = [users_frame(origin.meta.get("stack_trace")) for origin in origins]
    return list(dict.fromkeys(frame for frame in frames if frame is not None))


def _origins(node: LoopNode) -> list[Any]:
    """Return the nodes of the graph that a scheduler node computes, in the graph's order."""
    return sorted(node.node.get_origins()) if node.node is not None else []


#: What ATen calls operations that users know by another name.
_USUAL = {
    "mm": "matmul",
    "bmm": "matmul",
    "addmm": "linear",
    "to_copy": "to",
    "unsafe_view": "view",
    "prepare_softmax_online": "softmax",
    "convert_element_type": "to",
}

#: Operations that are in every kernel and say nothing of it.
_SILENT = {
    *("alias", "chunk", "clone", "copy", "detach", "empty", "expand", "full", "getitem", "permute", "reshape"),
    *("scalar_tensor", "select", "slice", "split", "squeeze", "t", "to", "transpose", "unsqueeze", "view"),
}

#: Calls of libraries.
_LIBRARY = {"baddbmm", "convolution", "linear", "matmul", "scaled_dot_product_attention"}


def node_name(node: LoopNode) -> tuple[tuple[str, ...], tuple[str, int] | None]:
    """Return (operations that a node computes, as the user or ATen calls them, each once; the line of the last).

    Calls of libraries and views are named where there is nothing else; a copy that one of these asks for has all that
    leads to the call as its origins.
    """
    origins = [(name, origin) for origin in _origins(node) if (name := _operation(origin))]
    if not origins and any(origin.op == "placeholder" for origin in _origins(node)):
        return ("copy of an input",), None  # in another layout, that a library call asks for
    if origins and origins[-1][0] in _LIBRARY:
        name, call = origins[-1]
        places = _places([call]) or node_locations(node)
        return (f"inputs of {name}" if _is_computed(node) else name,), places[-1] if places else None
    telling = [pair for pair in origins if pair[0] not in _SILENT | _LIBRARY]
    chosen = telling or [pair for pair in origins if pair[0] not in _SILENT] or origins
    places = _places([origin for _, origin in chosen]) or node_locations(node)
    return tuple(dict.fromkeys(name for name, _ in chosen)), places[-1] if places else None


def kernel_name(nodes: Iterable[LoopNode]) -> str:
    """Return `mul, abs, amax (model.py:25)` for the nodes of a kernel: its last operations, and their line."""
    named = [node_name(node) for node in nodes]
    operations = list(dict.fromkeys(operation for names, _ in named for operation in names))
    places = [place for _, place in named if place is not None]
    where = f" ({short_place(*places[-1])})" if places else ""
    return f"{', '.join(operations[-3:]) or 'a kernel'}{where}"


def _is_computed(node: LoopNode) -> bool:
    from torch._inductor import ir

    return isinstance(node.node, ir.ComputedBuffer)


def _operation(origin: Any) -> str:
    """Return `matmul` or `embedding` for a node of the graph; the empty string for what is no operation."""
    if origin.op != "call_function":
        return ""
    overload = origin.meta.get("original_aten") or origin.target
    name = getattr(overload, "_opname", None) or getattr(overload, "__name__", str(overload))
    name = str(name).strip("_").removeprefix("native_").removeprefix("prims_")
    return "scaled_dot_product_attention" if name.startswith("scaled_dot_product") else _USUAL.get(name, name)


def is_library_call(kernel: Kernel) -> bool:
    """Return True if a kernel is a call of a library's or a template: code that Inductor does not generate."""
    return not is_generated(kernel) and not is_no_kernel(kernel)


def is_no_kernel(kernel: Kernel) -> bool:
    """Return True for what has no code: a buffer that others fill, as kernels do with the parts of a `cat`."""
    from torch._inductor import scheduler

    return isinstance(kernel, scheduler.NopKernelSchedulerNode)


def device_name(schedule: Schedule) -> str:
    """Return `cpu`, or `sm_90` for the GPU that a schedule has code for; the empty string where it has none."""
    from torch._inductor.runtime.hints import DeviceProperties

    devices = {kernel.get_device() for kernel in schedule if is_generated(kernel)}
    gpus = [device for device in devices if device.type == "cuda"]
    if gpus:
        return f"sm_{DeviceProperties.create(gpus[0]).cc}"
    return next(iter(devices)).type if devices else ""


def node_location(node: LoopNode) -> tuple[str, int] | None:
    """Return one of them, or None."""
    return next(iter(node_locations(node)), None)
