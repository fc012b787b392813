"""For `bridge.explain` and `compile_for_gpu`: descriptions of the GPUs that need not be there."""

from __future__ import annotations

import dataclasses

_GIB = 1 << 30
_MIB = 1 << 20
_KIB = 1 << 10


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
