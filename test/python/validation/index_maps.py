"""Compare what the emitted Triton kernels load and store with the affine relations of the IR before the passes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import validate
from emitted import run_emitted
from interpreted_accesses import Accesses, recorded_accesses
from relations import accessed

import bridge
from bridge.backend import bridge as bridge_backend


def run(function, inputs, dynamic=False, **config) -> tuple[validate.Recorded, Accesses, dict[str, torch.Tensor]]:
    """Return the groups, what the kernels touch, and the buffers that are inputs and outputs."""
    with validate.recorded() as found, recorded_accesses() as touched:
        # A buffer that takes the place of another is written twice.
        config = {"allow_buffer_reuse": False, "inplace_buffers": False, **config}
        results, _ = run_emitted(function, inputs, bridge_backend, None if dynamic else False, **config)
    results = results if isinstance(results, (tuple, list)) else [results]
    if not found.groups:
        assert bridge.report().kernels_before <= 1
        pytest.skip("Inductor makes one kernel by itself")
    buffers = dict(zip(found.inputs, found.arguments, strict=True))
    for (name, _, _, offset), result in zip(found.outputs, results, strict=True):
        if name not in buffers:
            buffers[name] = torch.as_strided(result, (1,), (1,), result.storage_offset() - offset)
    return found, touched, buffers


def related(found: validate.Recorded) -> dict[tuple[str, str], np.ndarray]:
    """Return (buffer, `loaded` or `stored`) -> offsets in elements, by the relations of the groups."""
    offsets: dict[tuple[str, str], list[np.ndarray]] = {}
    for group in found.groups:
        for (position, kind), elements in accessed(group.before, group.sizes).items():
            buffer = group.buffers[position]
            subscripts = np.unravel_index(elements, buffer.shape) if buffer.shape else ()
            linear = sum((s * k for s, k in zip(subscripts, buffer.strides, strict=True)), np.zeros_like(elements))
            offsets.setdefault((buffer.name, kind), []).append(linear)
    return {key: np.concatenate(arrays) for key, arrays in offsets.items()}


def filled_by_parts(found: validate.Recorded, name: str) -> np.ndarray:
    """Return all elements of an output that other buffers are parts of; none of an input."""
    shapes = [shape for output, shape, *_ in found.outputs if output == name]
    return np.arange(np.prod(shapes[0]) if shapes and name not in found.inputs else 0)


def complaints(found: validate.Recorded, touched: Accesses, buffers: dict[str, torch.Tensor]) -> list[str]:
    lines, expected = touched.outside(), related(found)
    for name, tensor in buffers.items():
        stored = touched.touched(tensor, "stored")
        wanted = expected.get((name, "stored"), filled_by_parts(found, name))
        if len(np.unique(stored)) != len(stored):
            lines.append(f"{name}: an element is written more than once")
        if not np.array_equal(np.unique(stored), np.unique(wanted)):
            lines.append(f"{name}: {len(np.unique(stored))} elements are written, {len(np.unique(wanted))} are to be")
        if name in found.inputs:
            loaded = np.unique(touched.touched(tensor, "loaded"))
            if not np.array_equal(loaded, np.unique(expected.get((name, "loaded"), loaded[:0]))):
                lines.append(f"{name}: other elements are loaded than are to be")
    return lines
