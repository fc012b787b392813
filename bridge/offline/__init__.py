"""Drive Inductor and Triton for a GPU that is not there.

``compile_for_gpu`` generates the code that Inductor would on that GPU,
``compile_kernel`` turns its kernels into cubins, ``interpreter`` and
``run_interpreted`` run them on CPU tensors, ``count_loads`` and
``count_stores`` read their memory accesses.
"""

from .arch import ARCHITECTURES, GpuArch
from .capture import OfflineResult, compile_for_gpu
from .cubin import Cubin, compile_kernel
from .metrics import count_loads, count_stores
from .wrapper import TritonKernelSource, parse_wrapper

__all__ = [
    "ARCHITECTURES",
    "Cubin",
    "GpuArch",
    "OfflineResult",
    "TritonKernelSource",
    "compile_for_gpu",
    "compile_kernel",
    "count_loads",
    "count_stores",
    "interpreter",
    "parse_wrapper",
    "run_interpreted",
]


def __getattr__(name: str) -> object:
    # Lazily, so that ``python -m bridge.offline.interpret`` runs the module once.
    if name in ("interpreter", "run_interpreted"):
        from . import interpret

        return getattr(interpret, name)
    raise AttributeError(name)
