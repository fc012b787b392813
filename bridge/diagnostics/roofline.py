"""Expected times: what a device moves and computes in a second at best, and what a launch costs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache

#: Seconds that a launch takes in a graph on an H100, as `horizontal/cost.py` has it.
LAUNCH = 2e-6


@dataclass(frozen=True)
class Roofline:
    """bandwidth: bytes a second; rate: operations a second, None where it is not known; launch: seconds a kernel."""

    device: str
    bandwidth: float
    rate: float | None
    launch: float

    def seconds(self, moved: int, operations: int, kernels: int) -> float:
        """Return the time of kernels that move as many bytes and execute as many operations in all."""
        arithmetic = operations / self.rate if self.rate else 0.0
        return max(moved / self.bandwidth, arithmetic) + kernels * self.launch

    def __str__(self) -> str:
        rate = f", {self.rate / 1e12:.1f} T operations/s" if self.rate else ""
        return f"{self.bandwidth / 1e9:.0f} GB/s{rate}, {1e6 * self.launch:.0f} us a launch"


def roofline(target: str) -> Roofline:
    """Return the roofline of `cpu`, by a copy on this machine, or of a GPU of bridge.offline, by its vendor."""
    if target == "cpu":
        return Roofline("this CPU", _copy_bandwidth(), None, 0.0)
    from ..offline.arch import resolve_arch

    arch = resolve_arch(target)
    return Roofline(arch.name, arch.memory_bandwidth, arch.arithmetic_rate, LAUNCH)


@cache
def _copy_bandwidth() -> float:
    """Return the bytes a second, read and written: the best of a few copies that no cache holds."""
    import torch  # weight

    source = torch.zeros(1 << 24)
    target = torch.empty_like(source)
    best = float("inf")
    for _ in range(4):
        start = time.perf_counter()
        target.copy_(source)
        best = min(best, time.perf_counter() - start)
    return 2 * source.nbytes / best
