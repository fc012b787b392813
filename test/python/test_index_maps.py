"""What the emitted Triton kernels load and store is what the affine relations say: of the IR before the passes."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import emitted
import numpy as np
import pytest
import torch
import validate
from emitted import on_cpu, run_emitted
from interpreted_accesses import Accesses, recorded_accesses
from programs import generate
from relations import accessed

import bridge
from bridge.backend import bridge as bridge_backend

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from patterns import TESTED

#: Seeds of programs that are all Bridge's, masks, guards and several launches among them.
SEEDS = (2, 6, 11, 14, 20, 29, 32, 59, 65, 4441, 6460)


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    monkeypatch.setenv("BRIDGE_STRICT", "1")


def run(function, inputs, dynamic=False, **config) -> tuple[validate.Recorded, Accesses, dict[str, torch.Tensor]]:
    """The groups, what the kernels touch, and the buffers that are inputs and outputs."""
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
    """(buffer, `loaded` or `stored`) -> offsets in elements, by the relations of the groups."""
    offsets: dict[tuple[str, str], list[np.ndarray]] = {}
    for group in found.groups:
        for (position, kind), elements in accessed(group.before, group.sizes).items():
            buffer = group.buffers[position]
            subscripts = np.unravel_index(elements, buffer.shape) if buffer.shape else ()
            linear = sum((s * k for s, k in zip(subscripts, buffer.strides, strict=True)), np.zeros_like(elements))
            offsets.setdefault((buffer.name, kind), []).append(linear)
    return {key: np.concatenate(arrays) for key, arrays in offsets.items()}


def filled_by_parts(found: validate.Recorded, name: str) -> np.ndarray:
    """All elements of an output that other buffers are parts of; none of an input."""
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


@pytest.mark.one_in(2)
@pytest.mark.parametrize("pattern", TESTED, ids=lambda pattern: pattern.name)
def test_patterns(pattern):
    found, touched, buffers = run(pattern.function, pattern.make(None, torch.float32, "cpu", small=True))
    assert touched.launches and len(buffers) > len(found.inputs)
    assert complaints(found, touched, buffers) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_programs(seed):
    program = generate(seed)
    config = {"triton.persistent_reductions": program.persistent}
    found, touched, buffers = run(program.function, program.inputs(), program.dynamic, **config)
    assert complaints(found, touched, buffers) == []


#: What goes wrong in the kernel of `rmsnorm_head_tail`: what of its source, by what, and what is said.
SABOTAGE = {
    "past the end": (r"tl.load\(in_ptr0 \+ \(", "tl.load(in_ptr0 + (1 + ", "element 1344 of 1344"),
    "before the start": (r"tl.load\(in_ptr1 \+ \(", "tl.load(in_ptr1 + ((-1) + ", "element -1 of 192"),
    "another row": (r"192\*x0", "0*x0", "other elements are loaded"),
    "no guard": (r"r0_mask & tmp\d+ & xmask", "r0_mask & xmask", "written more than once"),
    "no mask of lanes": (r"(tl.load\(in_ptr0.*), r0_mask & xmask,", r"\1, xmask,", "element 1344 of 1344"),
    "a guard too narrow": (
        r"tl.full\(\[1, 1\], 24,",
        "tl.full([1, 1], 25,",
        "1169 elements are written, 1176 are to be",
    ),
    "the offset of a piece": (r"\(-24\) \+ r0_1", "(-23) + r0_1", "element 1176 of 1176"),
}


@pytest.mark.parametrize("what", SABOTAGE)
def test_what_goes_wrong_is_found(what, monkeypatch):
    """The test of the test."""
    old, new, said = SABOTAGE[what]

    def sabotaged(code: str) -> str:
        changed, count = re.subn(old, new, on_cpu(code))
        assert count
        return changed

    monkeypatch.setattr(emitted, "on_cpu", sabotaged)
    (pattern,) = [p for p in TESTED if p.name == "rmsnorm_head_tail"]
    outcome = run(pattern.function, pattern.make(None, torch.float32, "cpu", small=True))
    assert any(said in line for line in complaints(*outcome)), complaints(*outcome)[:5]
