"""Run the kernels that are emitted for a GPU, proven again by isl, and compare them with eager in float64."""

from __future__ import annotations

from collections.abc import Callable

import torch
from emitted import NO_STAGES, run_emitted

from bridge.backend import bridge


def rechecked(graph, inputs):
    """Compile strictly: Bridge's own errors are raised, and so is a difference between the proofs of isl and MLIR."""
    return bridge(graph, inputs, options={"strict": True, "recheck": True})


def forced(graph, inputs):
    """Compile with `recheck` and with every legal fusion forced: interpreted kernels have few rows."""
    return bridge(graph, inputs, options={"strict": True, "recheck": True, "force_fusion": True})


def check(
    function: Callable,
    given: list[torch.Tensor],
    kernels: int,
    dynamic: bool | None = False,
    backend: Callable = rechecked,
) -> None:
    """Compare with eager in float64, and count the kernels."""
    outputs, codes = run_emitted(function, given, backend, dynamic, **NO_STAGES)
    expected = function(*(x.double() for x in given))
    for got, want in zip(*(v if isinstance(v, tuple) else (v,) for v in (outputs, expected)), strict=True):
        torch.testing.assert_close(got.double(), want.double(), rtol=2e-5, atol=2e-5)
    assert sum(code.count("@triton.jit") for code in codes) == kernels
