"""Obey Inductor's flag `benchmark_fusion`: time both sides of a fusion on the GPU while it is compiled."""

from __future__ import annotations

from collections.abc import Iterable

from ...inductor.protocols import Kernel
from ...reasons import Reason, Unsupported
from . import codegen


class Timing:
    """Hold the time of kernels that a fusion would replace; taken before their nodes get new loops."""

    def __init__(self, kernels: Iterable[Kernel]):
        self.apart = sum(map(codegen.milliseconds, kernels))

    def check(self, fused: Kernel) -> str:
        """Return what was measured; Unsupported(not_profitable) where the fused kernel is not faster."""
        together = codegen.milliseconds(fused)
        times = f"measured {1e3 * self.apart:.1f} us apart, {1e3 * together:.1f} us fused"
        if together >= self.apart:
            raise Unsupported(Reason.not_profitable, times)
        return times
