"""Find and share what torch's runtime chose for Triton kernels when they were first called."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner


def tuned_kernels() -> dict[str, CachingAutotuner]:
    """Return what launches each kernel called since the caches were emptied, by source without the kernel's name.

    Kernels of templates are left out: their files are not noted, and each has one configuration.
    """
    from torch._inductor.codecache import PyCodeCache
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    values = [value for module in PyCodeCache.modules for value in vars(module).values()]
    kernels = [value for value in values if isinstance(value, CachingAutotuner) and len(value.launchers) == 1]
    return {_source(kernel): kernel for kernel in kernels if kernel.filename}


def _source(kernel: CachingAutotuner) -> str:
    text = Path(kernel.filename).read_text(encoding="utf-8")
    return text.replace(kernel.inductor_meta["kernel_name"], "kernel")


def share_choices(kernels: Mapping[str, CachingAutotuner], tuned: Mapping[str, CachingAutotuner]) -> int:
    """Have kernels run with the configurations of others of the same source; returns how many there are."""
    common = kernels.keys() & tuned.keys()
    for source in common:
        kernels[source].launchers = tuned[source].launchers
        if hasattr(kernels[source], "_cached_launcher"):
            kernels[source]._cached_launcher = None  # It would be called without a look at `launchers`.
    return len(common)
