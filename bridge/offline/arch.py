"""For `bridge.explain` and `compile_for_gpu`: descriptions of the GPUs that need not be there."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

_GIB = 1 << 30
_MIB = 1 << 20
_KIB = 1 << 10

#: Bits of the bus to a GPU's memory, as an H100 and an A100 have; the clock is what gives the bandwidth.
_BUS_WIDTH = 5120


@dataclasses.dataclass(frozen=True)
class GpuArch:
    """Hold the device properties that Inductor's and Triton's choices depend on.

    For rooflines also the vendor's peaks: ``memory_bandwidth`` in bytes and
    ``arithmetic_rate`` in float32 operations, a second; 0 where not known.
    """

    name: str
    major: int
    minor: int
    multi_processor_count: int
    total_memory: int
    l2_cache_size: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    memory_bandwidth: float = 0.0
    arithmetic_rate: float = 0.0
    regs_per_multiprocessor: int = 65536
    max_threads_per_multi_processor: int = 2048
    warp_size: int = 32

    @property
    def capability(self) -> int:
        """Return the compute capability as Triton writes it: 90 for 9.0."""
        return self.major * 10 + self.minor


ARCHITECTURES = {
    90: GpuArch("NVIDIA H100", 9, 0, 132, 80 * _GIB, 50 * _MIB, 227 * _KIB, 228 * _KIB, 3.35e12, 66.9e12),
    80: GpuArch("NVIDIA A100-SXM4-80GB", 8, 0, 108, 80 * _GIB, 40 * _MIB, 163 * _KIB, 164 * _KIB, 2.04e12, 19.5e12),
}


def resolve_arch(arch: int | str | GpuArch) -> GpuArch:
    """Accept ``90``, ``"sm_90"``, ``"sm_90a"`` or a ``GpuArch``."""
    if isinstance(arch, GpuArch):
        return arch
    digits = str(arch).removeprefix("sm_").removesuffix("a")
    if not digits.isdigit() or int(digits) not in ARCHITECTURES:
        known = ", ".join(f"sm_{number}" for number in sorted(ARCHITECTURES))
        raise ValueError(f"unknown GPU architecture {arch!r}; known: {known}")
    return ARCHITECTURES[int(digits)]


def device_properties(arch: GpuArch) -> SimpleNamespace:
    """Return what `torch.cuda.get_device_properties` would return for a GPU of this architecture."""
    return SimpleNamespace(
        name=arch.name,
        major=arch.major,
        minor=arch.minor,
        multi_processor_count=arch.multi_processor_count,
        total_memory=arch.total_memory,
        warp_size=arch.warp_size,
        L2_cache_size=arch.l2_cache_size,
        memory_bus_width=_BUS_WIDTH,
        memory_clock_rate=round(arch.memory_bandwidth * 8 / (2 * _BUS_WIDTH) / 1000),
        regs_per_multiprocessor=arch.regs_per_multiprocessor,
        max_threads_per_multi_processor=arch.max_threads_per_multi_processor,
        max_threads_per_block=1024,
        shared_memory_per_block=48 * 1024,
        shared_memory_per_block_optin=arch.shared_memory_per_block_optin,
        shared_memory_per_multiprocessor=arch.shared_memory_per_multiprocessor,
        gcnArchName="",
        is_integrated=False,
        is_multi_gpu_board=False,
    )
