"""For `bridge bench --corpus`: many processes compile, and one at a time runs on the GPU."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

#: How often this process has entered.
_depth = 0


@functools.cache
def _lock() -> int:
    return os.open(Path(tempfile.gettempdir()) / f"bridge_bench_{os.getuid()}.lock", os.O_CREAT | os.O_RDWR)


@contextlib.contextmanager
def gpu() -> Iterator[None]:
    """Keep other processes that enter this off the GPU; may be entered again within."""
    global _depth
    if not _depth:
        fcntl.flock(_lock(), fcntl.LOCK_EX)
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if not _depth:
            fcntl.flock(_lock(), fcntl.LOCK_UN)


def locked(backend: Callable) -> Callable:
    """Return a Dynamo backend whose code runs, and tunes its kernels, alone on the GPU; it compiles beside others."""

    def compile_graph(gm: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable:
        compiled = backend(gm, inputs)

        def run(*args: object) -> object:
            with gpu():
                return compiled(*args)

        return run

    return compile_graph
