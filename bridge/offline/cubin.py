"""For `bridge.explain` and benchmarks/cubins.py: compile Inductor's Triton kernels to cubins without a GPU."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from . import _stubs
from .arch import GpuArch, resolve_arch
from .wrapper import TritonKernelSource

if TYPE_CHECKING:
    import triton
    from triton.compiler import CompiledKernel

# Config keys that are options of the compiler and not kernel arguments.
_COMPILER_OPTIONS = ("num_warps", "num_stages")


@dataclasses.dataclass(frozen=True)
class Cubin:
    """Hold a compiled kernel and the resources it takes.

    ``registers`` is per thread and ``shared_bytes`` per block. ``spills``
    counts the 4-byte words of local memory per thread, as Triton's ``n_spills``
    does. ``config`` holds the block sizes, ``num_warps`` and ``num_stages``.
    """

    name: str
    config: dict[str, int]
    registers: int
    spills: int
    shared_bytes: int
    ptx: str
    cubin: bytes


def _resource_usage(cubin: bytes) -> dict[str, int]:
    """Return what ``cuobjdump --dump-resource-usage`` prints: REG, STACK, LOCAL, ..."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "kernel.cubin")
        path.write_bytes(cubin)
        command = [_stubs.cuobjdump_path(), "--dump-resource-usage", str(path)]
        report = subprocess.run(command, check=True, capture_output=True, text=True)
    return {key: int(value) for key, value in re.findall(r"(\w+):(\d+)", report.stdout)}


def _cubin(name: str, config: dict[str, int], compiled: CompiledKernel) -> Cubin:
    usage = _resource_usage(compiled.asm["cubin"])
    return Cubin(
        name=name,
        config=config,
        registers=usage["REG"],
        # The driver's local size, which Triton divides by 4, is STACK plus LOCAL.
        spills=(usage["STACK"] + usage["LOCAL"]) // 4,
        shared_bytes=compiled.metadata.shared,
        ptx=compiled.asm["ptx"],
        cubin=compiled.asm["cubin"],
    )


def _describe(config: triton.Config) -> dict[str, int]:
    described = dict(config.kwargs)
    described.update({key: getattr(config, key) for key in _COMPILER_OPTIONS})
    return described


def _override(default: triton.Config, config: dict[str, int]) -> triton.Config:
    """Return the heuristic's own config with the given values in place of its own."""
    merged = {**_describe(default), **config}
    options = {key: merged.pop(key) for key in _COMPILER_OPTIONS}
    unknown = merged.keys() - default.kwargs.keys()
    if unknown:
        raise ValueError(f"no such block sizes in this kernel: {sorted(unknown)}")
    return _stubs.triton_config(merged, **options)


def compile_kernel(
    kernel: TritonKernelSource,
    *,
    config: dict[str, int] | None = None,
    arch: int | str | GpuArch = 90,
) -> Cubin | list[Cubin]:
    """Compile ``kernel`` for ``arch``.

    With ``config`` (``{"XBLOCK": 1, "R0_BLOCK": 2048, "num_warps": 8}``; what it
    leaves out is as in the first config of Inductor's heuristic) this returns
    one ``Cubin``; without, one for each config that the heuristic would time.
    """
    gpu = resolve_arch(arch)
    with _stubs.scratch_caches(), _stubs.gpu_stubs(gpu):
        autotuner = _stubs.load_autotuner(kernel.name, kernel.source, gpu)
        configs = autotuner.configs
        if config is not None:
            configs = [_override(configs[0], config)]
        cubins = [_cubin(kernel.name, _describe(c), _stubs.compile_config(autotuner, c)) for c in configs]
    return cubins if config is None else cubins[0]
