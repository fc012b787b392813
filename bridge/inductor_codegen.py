"""What of Bridge's extends Inductor's code generators: the second file, and the last, that knows torch's private API.

A scheduler object gets a class derived from its own; no class of torch's is changed, and no other compilation sees it.
"""

from __future__ import annotations

import functools
from typing import Any

import torch


def keep_rows_in_registers(scheduler: Any, device: torch.device, names: set[str]) -> None:
    """Makes the kernels of the named scheduler nodes persistent reductions: a row is loaded once and kept.

    Only this scheduler's code generator is changed, and only for kernels that hold one of the nodes.
    """
    backend = scheduler.get_backend(device)
    backend = getattr(backend, "_triton_scheduling", backend)  # CUDA's delegates to several
    if not hasattr(backend, "bridge_persistent_nodes"):
        backend.__class__ = _band_scheduling(type(backend))
        backend.bridge_persistent_nodes = set()
    backend.bridge_persistent_nodes |= names


@functools.cache
def _band_scheduling(base: type) -> type:
    """Inductor's Triton scheduling with the choice of a persistent reduction made by Bridge for its kernels."""

    class BandScheduling(base):  # type: ignore[misc, valid-type]
        def create_kernel_choices(self, kernel_features: Any, kernel_args: Any, kernel_kwargs: Any) -> Any:
            names = {node.get_name() for node in kernel_features.scheduler_nodes()}
            if names & self.bridge_persistent_nodes:
                kernel_kwargs = {**kernel_kwargs, "override_persistent_reduction": True}
            return super().create_kernel_choices(kernel_features, kernel_args, kernel_kwargs)

    return BandScheduling
