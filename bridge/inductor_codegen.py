"""What of Bridge's extends Inductor's code generators: the second file, and the last, that knows torch's private API.

A scheduler object gets a class derived from its own; no class of torch's is changed, and no other compilation sees it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Iterator
from typing import Any

import torch


def keep_rows_in_registers(scheduler: Any, device: torch.device, names: set[str]) -> None:
    """Makes the kernels of the named scheduler nodes persistent reductions: a row is loaded once and kept.

    Only this scheduler's code generator is changed, and only for kernels that hold one of the nodes.
    """
    _bridge_backend(scheduler, device).bridge_persistent_nodes |= names


def _bridge_backend(scheduler: Any, device: torch.device) -> Any:
    """The scheduler's Triton code generator, of Bridge's class from now on."""
    backend = scheduler.get_backend(device)
    backend = getattr(backend, "_triton_scheduling", backend)  # CUDA's delegates to several
    if not hasattr(backend, "bridge_persistent_nodes"):
        backend.__class__ = _band_scheduling(type(backend))
        backend.bridge_persistent_nodes = set()
        backend.bridge_collected = None
    return backend


@functools.cache
def _band_scheduling(base: type) -> type:
    """Inductor's Triton scheduling with what Bridge decided for its kernels: persistent rows, shared launches."""
    from torch._inductor.codegen.triton_combo_kernel import ComboKernel

    class BandScheduling(base):  # type: ignore[misc, valid-type]
        def create_kernel_choices(self, kernel_features: Any, kernel_args: Any, kernel_kwargs: Any) -> Any:
            names = {node.get_name() for node in kernel_features.scheduler_nodes()}
            if names & self.bridge_persistent_nodes:
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
                kernel = ComboKernel(self.kernel_type, enable_autotune=True, mixed_sizes=True, **arguments)
                for features in self._features(combo_kernel_node.snodes):
                    part = kernel.create_sub_kernel(self._part(features, arguments))
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

        def _part(self, features: Any, arguments: dict[str, Any]) -> Any:
            """The kernel that would stand alone, over its share of the program ids."""
            schedule, numel, reduction_numel = features.node_schedule, features.numel, features.reduction_numel
            tiling, scores = self.get_tiling_and_scores(schedule, numel, reduction_numel, features.coalesce_analysis)
            options = {"features": features, "tiling_scores": scores, "is_combo_kernel": True, **arguments}
            options["pid_cache"] = {"tl.program_id(0)": "x_pid_offset", "tl.program_id(1)": "y_pid_offset"}
            options["override_cooperative_reduction"] = False
            (kernel,) = self.create_kernel_choices(features, [tiling], options)
            return kernel

    return BandScheduling


# ---------------------------------------------------------------------------------------------------------
# One launch for several kernels
# ---------------------------------------------------------------------------------------------------------


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
