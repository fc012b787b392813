"""What of Bridge's extends Inductor's code generators: the second file, and the last, that knows torch's private API.

A scheduler object gets a class derived from its own; no class of torch's is changed, and no other compilation sees it.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
from collections.abc import Iterator
from typing import Any

import sympy
import torch

from . import inductor_compat as inductor
from . import ops_table


def keep_rows_in_registers(scheduler: Any, device: torch.device, names: set[str], only_inner: bool = False) -> None:
    """Makes the kernels of the named scheduler nodes persistent reductions: a row is loaded once and kept.

    Only this scheduler's code generator is changed, and only for kernels that hold one of the nodes.
    only_inner: leave the kernel alone where a row's elements are not neighbours in memory.
    """
    backend = _bridge_backend(scheduler, device)
    (backend.bridge_inner_nodes if only_inner else backend.bridge_persistent_nodes).update(names)


def run_in_lanes(scheduler: Any, device: torch.device) -> None:
    """Has kernels of this scheduler know `ops_table.GUARDED` and `ops_table.SEGMENTED`."""
    _bridge_backend(scheduler, device)


@functools.cache
def _lane_kernel(base: type) -> type:
    """Inductor's Triton kernel, in which some lanes of a row may store alone and reductions may be over segments."""
    from torch._inductor.codegen.triton import get_triton_reduction_function

    class LaneKernel(base):  # type: ignore[misc, valid-type]
        def reduction(self, dtype: Any, src_dtype: Any, reduction_type: Any, value: Any) -> Any:
            kind, _, rest = reduction_type.partition(":")
            if kind == ops_table.GUARDED:
                self.num_reduction -= 1  # whoever called has counted it
                return self._guarded(*value)
            if kind == ops_table.SEGMENTED:
                return self._segmented(*rest.split(":"), value)
            return super().reduction(dtype, src_dtype, reduction_type, value)

        def _guarded(self, value: Any, mask: Any) -> Any:
            """The same variable, with the mask for the store that it is made for; other uses do not see it."""
            guarded = copy.copy(value)
            guarded.bridge_mask = mask
            return guarded

        def _segmented(self, kind: str, lanes: str, value: Any) -> Any:
            """Every lane's value is the reduction of its segment: consecutive lanes of the innermost dimension."""
            *outer, row = self.dense_size_list()
            tile, segments = f"[{', '.join([*outer, row])}]", ", ".join([*outer, f"{row} // {lanes}", lanes])
            function = get_triton_reduction_function(kind)
            dense = f"tl.reshape(tl.broadcast_to({value}, {tile}), [{segments}])"
            shape = (*outer, f"{row} // {lanes}")
            line = f"{function}({dense}, {len(shape)})"
            reduced = self.cse.generate(self.compute, line, dtype=value.dtype, shape=shape)
            kept = f"tl.broadcast_to(tl.expand_dims({reduced}, {len(shape)}), [{segments}])"
            return self.cse.generate(
                self.compute, f"tl.reshape({kept}, {tile})", dtype=value.dtype, shape=tuple(self.dense_size_list())
            )

        def store(self, name: str, index: Any, value: Any, mode: Any = None) -> None:
            mask = getattr(value, "bridge_mask", None)
            if mask is None:
                return super().store(name, index, value, mode)
            with self.mask_loads(mask, None):
                return super().store(name, index, value, mode)

    return LaneKernel


def _bridge_backend(scheduler: Any, device: torch.device) -> Any:
    """The scheduler's Triton code generator, of Bridge's class from now on."""
    backend = scheduler.get_backend(device)
    backend = getattr(backend, "_triton_scheduling", backend)  # CUDA's delegates to several
    if not hasattr(backend, "bridge_persistent_nodes"):
        backend.__class__ = _band_scheduling(type(backend))
        backend.bridge_persistent_nodes = set()
        backend.bridge_inner_nodes = set()
        backend.bridge_collected = None
        backend.kernel_type = _lane_kernel(backend.kernel_type)
    return backend


@functools.cache
def _band_scheduling(base: type) -> type:
    """Inductor's Triton scheduling with what Bridge decided for its kernels: persistent rows, shared launches."""

    class BandScheduling(base):  # type: ignore[misc, valid-type]
        def create_kernel_choices(self, kernel_features: Any, kernel_args: Any, kernel_kwargs: Any) -> Any:
            names = {node.get_name() for node in kernel_features.scheduler_nodes()}
            inner = names & self.bridge_inner_nodes and _is_inner(kernel_features, kernel_kwargs.get("tiling_scores"))
            if names & self.bridge_persistent_nodes or inner:
                kernel_kwargs = {**kernel_kwargs, "override_persistent_reduction": True}
            return super().create_kernel_choices(kernel_features, kernel_args, kernel_kwargs)

        def codegen_node_schedule(self, kernel_features: Any) -> Any:
            if self.bridge_collected is None:
                return super().codegen_node_schedule(kernel_features)
            self.bridge_collected.append(kernel_features)
            return None

        def codegen_combo_kernel(self, combo_kernel_node: Any) -> None:
            if not getattr(combo_kernel_node, "bridge_siblings", False):
                return super().codegen_combo_kernel(combo_kernel_node)
            with _own_blocks() as arguments:
                kernel = _shared_launch_kernel()(self.kernel_type, enable_autotune=True, mixed_sizes=True, **arguments)
                for features, options in self._parts(combo_kernel_node.snodes):
                    part = kernel.create_sub_kernel(self._part(features, {**options, **arguments}))
                    self.process_kernel(part, features.node_schedule)
                source = kernel.codegen_kernel()
            name = self.define_kernel(source, [combo_kernel_node], kernel)
            self.codegen_comment(combo_kernel_node.snodes, name)
            kernel.call_kernel(name)
            self.free_buffers_in_scheduler()
            return None

        def _features(self, kernels: list[Any]) -> list[Any]:
            """What the kernels would be generated from alone: codegen_node comes to codegen_node_schedule above."""
            self.bridge_collected = []
            try:
                for kernel in kernels:
                    self.codegen_node(kernel)
                return self.bridge_collected
            finally:
                self.bridge_collected = None

        def _parts(self, kernels: list[Any]) -> list[tuple[Any, dict[str, Any]]]:
            """Features and options of each part; where one keeps its rows in registers, all do that can.

            A looped reduction has the registers of its neighbours, and fewer warps at a time, without using them.
            """
            scored = [(features, _tiling(self, features)) for features in self._features(kernels)]
            kept = any(_keeps_rows(self, features) for features, _ in scored)
            parts = []
            for features, (tiling, scores) in scored:
                options = {"tiling": tiling, "tiling_scores": scores}
                if kept and _is_short_inner_reduction(features, scores):
                    options["override_persistent_reduction"] = True
                parts.append((features, options))
            return parts

        def _part(self, features: Any, options: dict[str, Any]) -> Any:
            """The kernel that would stand alone, over its share of the program ids."""
            tiling = options.pop("tiling")
            options |= {"features": features, "is_combo_kernel": True, "override_cooperative_reduction": False}
            options["pid_cache"] = {"tl.program_id(0)": "x_pid_offset", "tl.program_id(1)": "y_pid_offset"}
            (kernel,) = self.create_kernel_choices(features, [tiling], options)
            return kernel

    return BandScheduling


# ---------------------------------------------------------------------------------------------------------
# One launch for several kernels
# ---------------------------------------------------------------------------------------------------------


def _tiling(scheduling: Any, features: Any) -> tuple[Any, Any]:
    """(extents of the tile's dimensions, their scores), as codegen_node_schedule asks for them."""
    schedule, numel, reduction_numel = features.node_schedule, features.numel, features.reduction_numel
    return scheduling.get_tiling_and_scores(schedule, numel, reduction_numel, features.coalesce_analysis)


def _keeps_rows(scheduling: Any, features: Any) -> bool:
    """Whether the kernel would be persistent if it stood alone."""
    from torch._inductor.virtualized import V

    if {node.get_name() for node in features.scheduler_nodes()} & scheduling.bridge_persistent_nodes:
        return True
    return features.is_reduction() and V.choices.should_use_persistent_reduction(features, False)


#: Elements of a row up to which Inductor makes a reduction over contiguous elements persistent.
SHORT_ROW = 1024


def _is_short_inner_reduction(features: Any, tiling_scores: Any) -> bool:
    """What Inductor would make persistent if it asked for the hint with the scores, as it does for the blocks."""
    if not features.is_reduction() or not isinstance(features.reduction_numel, (int, sympy.Integer)):
        return False
    return features.reduction_numel <= SHORT_ROW and _is_inner(features, tiling_scores)


def _is_inner(features: Any, tiling_scores: Any) -> bool:
    from torch._inductor.runtime.hints import ReductionHint

    return features.get_reduction_hint(tiling_scores) is ReductionHint.INNER


@contextlib.contextmanager
def _own_blocks() -> Iterator[dict[str, Any]]:
    """Code generation in which every part of a kernel has block sizes of its own; yields arguments that say so.

    torch 2.11 has a configuration for it, later ones an argument of each class.
    """
    from torch._inductor import config
    from torch._inductor.codegen.triton_combo_kernel import ComboKernel

    if _takes(ComboKernel.__init__, "per_subkernel_blocks"):
        yield {"per_subkernel_blocks": True}
        return
    with config.patch(combo_kernel_per_subkernel_blocks=True):
        yield {}


def _takes(function: Any, parameter: str) -> bool:
    return parameter in inspect.signature(function).parameters


@functools.cache
def _shared_launch_kernel() -> type:
    """Inductor's combo kernel; where its runtime tries one configuration only, with several to try."""
    from torch._inductor.codegen.triton_combo_kernel import ComboKernel
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    if hasattr(CachingAutotuner, "_combo_sequential_autotune"):
        return ComboKernel

    class SharedLaunchKernel(ComboKernel):
        def jit_line(self, *args: Any, **kwargs: Any) -> str:
            line = super().jit_line(*args, **kwargs)  # it also decides on the dispatch and fills in the two metas
            parts = [self._configurations(part) for part in self.sub_kernels]
            # Inductor names the kernel for what it finds in the source: the comment keeps the name.
            return f"""
                # In the place of {line.split("(")[0].strip()}, which tries one configuration of each part.
                @triton_heuristics.cached_autotune(
                    None,
                    configs=[{", ".join(_joint_configurations(parts))}],
                    triton_meta={self.triton_meta!r},
                    inductor_meta={self.inductor_meta!r},
                    heuristic_type=triton_heuristics.HeuristicType.POINTWISE,
                    filename=__file__,
                )
                @triton.jit
            """

        def _configurations(self, part: Any) -> list[Any]:
            """What Inductor would try for a part that stands alone."""
            from torch._inductor.runtime import triton_heuristics

            heuristics, sizes = self.select_heuristics(part)
            counts = {"num_load": part.num_load, "num_store": part.num_store, "num_reduction": part.num_reduction}
            meta = {**part.inductor_meta_common(), **counts, "tiling_scores": part.tiling_scores}
            arguments = {"triton_meta": self.triton_meta, "inductor_meta": meta, "return_configs": True}
            if part.inside_reduction:
                arguments["reduction_hint"] = part.features.get_reduction_hint(part.tiling_scores)
            return getattr(triton_heuristics, heuristics)(sizes, **arguments)

    return SharedLaunchKernel


def _joint_configurations(parts: list[list[Any]]) -> list[str]:
    """Source of one configuration for the launch: the n-th of every part, with each of their numbers of warps.

    A part's R blocks are left out where it is persistent: its code has them, and its configurations do not.
    """
    joint: dict[str, None] = {}
    for n in range(max(map(len, parts))):
        chosen = [configs[min(n, len(configs) - 1)] for configs in parts]
        blocks = {f"{key}_{i}": size for i, config in enumerate(chosen) for key, size in config.kwargs.items()}
        stages = max(config.num_stages for config in chosen)
        for warps in sorted({config.num_warps for config in chosen}, reverse=True):
            joint[f"triton_heuristics.Config({blocks!r}, num_warps={warps}, num_stages={stages})"] = None
    return list(joint)


def cannot_share_launch(scheduler: Any, device: torch.device) -> str | None:
    """Why this code generator, as it is configured, cannot have several kernels share a launch; None if it can."""
    from torch._inductor import config
    from torch._inductor.codegen.triton import TritonScheduling

    triton = config.triton
    backend = scheduler.get_backend(device)
    if not isinstance(getattr(backend, "_triton_scheduling", backend), TritonScheduling):
        return f"{type(backend).__name__} has no partition of program ids"
    if triton.cooperative_reductions or triton.force_cooperative_reductions or triton.multi_kernel:
        return "cooperative reductions and multi_kernel need launches of their own"
    if triton.tile_reductions or triton.prefer_nd_tiling or (triton.max_tiles or 2) > 2:
        return "three-dimensional tiles cannot be partitioned"
    if getattr(scheduler, "_multi_stream_nodes", False):
        return "the graph runs on several streams"
    return None


def share_launch(kernels: list[Any]) -> Any:
    """One scheduler node for independent kernels: one launch, whose program ids are divided among them."""
    from torch._inductor.scheduler import ForeachKernelSchedulerNode

    scheduler = kernels[0].scheduler
    _bridge_backend(scheduler, kernels[0].get_device())
    node = ForeachKernelSchedulerNode(scheduler, kernels, use_custom_partition_algo=True, enable_autotune=True)
    node.bridge_siblings = True
    return node


# ---------------------------------------------------------------------------------------------------------
# Kernels in the schedule
# ---------------------------------------------------------------------------------------------------------


def fuse_nodes(nodes: list[Any]) -> Any | None:
    """One kernel of single scheduler nodes, if Inductor's code generator can run them together; else None."""
    backend = nodes[0].scheduler.get_backend(nodes[0].get_device())
    fused = nodes[0]
    for node in nodes[1:]:
        feeds = bool(inductor.buffers_written(fused) & inductor.buffers_read(node))
        can_fuse = backend.can_fuse_vertical if feeds else backend.can_fuse_horizontal
        if not can_fuse(fused, node):
            return None
        fused = backend.fuse(fused, node)
    return fused


def replace_kernels(scheduler: Any, nodes: list[Any], fused: dict[int, Any], removed: set[int]) -> list[Any]:
    """The schedule with fused kernels in the place of those they replace.

    fused: position of the first kernel replaced -> the new one; removed: positions of all replaced.
    """
    for kernel in fused.values():
        scheduler.name_to_fused_node.update({n.get_name(): kernel for n in kernel.get_nodes()})
        scheduler.name_to_fused_node[kernel.get_name()] = kernel
    kept = [fused.get(i, node) for i, node in enumerate(nodes) if i in fused or i not in removed]
    return scheduler.topological_sort_schedule(kept)
