"""For tests, and `python -m bridge.offline.interpret`: run Inductor's Triton kernels on CPU tensors.

No subprocess is needed: ``interpreter`` swaps the functions that Triton and
Inductor decorated when they were imported for interpreted ones, and swaps them
back. Only ``@triton.jit`` functions of the caller's own must be defined within
it. ``python -m bridge.offline.interpret script.py [arguments]`` runs a whole
script so.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

if __name__ == "__main__":
    # A script may decorate kernels as soon as it has imported Triton.
    os.environ["TRITON_INTERPRET"] = "1"

import torch

from ..support.fresh_code import fresh_entry
from . import _interpreter_stubs, _stubs
from .arch import resolve_arch
from .libdevice import cpu_libdevice


@contextlib.contextmanager
def interpreter() -> Iterator[None]:
    """Have ``torch.compile`` on CPU tensors emit Triton kernels and interpret them.

    The compiled function must be called within the context, too.
    """
    with (
        _stubs.scratch_caches(),
        _stubs.cpu_triton_stubs(resolve_arch(90)),
        torch._inductor.config.patch(cpu_backend="triton"),
        _interpreter_stubs.interpreted_triton(),
        cpu_libdevice(_interpreter_stubs.LIBDEVICE),
    ):
        yield


def run_interpreted(
    fn: Callable,
    inputs: Sequence[object],
    *,
    backend: str | Callable = "inductor",
    dynamic: bool | None = False,
    config_patches: Mapping[str, object] | None = None,
    context: AbstractContextManager | None = None,
) -> Any:
    """Compile ``fn`` with ``backend`` and return its outputs for ``inputs``.

    The arguments mean what they do for ``compile_for_gpu``. The interpreter
    takes milliseconds per program instance: choose small inputs.
    """
    with (
        interpreter(),
        torch._inductor.config.patch(config_patches or {}),
        context or contextlib.nullcontext(),
        torch.no_grad(),
    ):
        entry = fresh_entry(fn)
        return torch.compile(entry, backend=backend, dynamic=dynamic)(*inputs)


def main() -> None:
    """Run the script named on the command line under ``interpreter``."""
    if len(sys.argv) < 2:
        raise SystemExit("usage: python -m bridge.offline.interpret script.py [args]")
    del sys.argv[0]
    with interpreter():
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
