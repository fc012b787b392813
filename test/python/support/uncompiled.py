"""Do without a C++ compiler where only decisions or emitted code are tested: it takes seconds for each graph."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from unittest import mock

import torch
from torch._inductor.async_compile import AsyncCompile


@contextlib.contextmanager
def without_cpp() -> Iterator[None]:
    """Make Inductor's C++ kernels do nothing: results have the right form, and no numbers.

    No cache may keep a graph with such kernels.
    """
    nothing = mock.Mock(return_value=lambda *args: None)
    with (
        torch._inductor.config.patch(force_disable_caches=True),
        mock.patch.object(AsyncCompile, "cpp_pybinding", nothing),
    ):
        yield
