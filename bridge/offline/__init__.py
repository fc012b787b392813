"""Drive Inductor and Triton for a GPU that is not there.

``compile_for_gpu`` generates the code that Inductor would on that GPU,
``compiling_for_gpu`` does so for what a program compiles by itself,
``compile_kernel`` turns its kernels into cubins, ``interpreter`` and
``run_interpreted`` run them on CPU tensors, ``count_loads`` and
``count_stores`` read their memory accesses.

Importing this package loads none of it.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "ARCHITECTURES": "arch",
    "GpuArch": "arch",
    "OfflineResult": "capture",
    "compile_for_gpu": "capture",
    "compiling_for_gpu": "capture",
    "Cubin": "cubin",
    "compile_kernel": "cubin",
    "count_loads": "metrics",
    "count_stores": "metrics",
    "TritonKernelSource": "wrapper",
    "parse_wrapper": "wrapper",
    "interpreter": "interpret",
    "run_interpreted": "interpret",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(name)
    return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
