"""Test what the emitted Triton kernels load and store is what the affine relations say: of the IR before the passes."""

from __future__ import annotations

import re

import emitted
import pytest
import torch
from emitted import on_cpu
from index_maps import complaints, run
from patterns import TESTED
from programs import generate

#: Seeds of programs that are all Bridge's, masks, guards and several launches among them.
SEEDS = (2, 6, 11, 14, 20, 29, 32, 59, 65, 4441, 6460)


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    monkeypatch.setenv("BRIDGE_STRICT", "1")


@pytest.mark.one_in(10)
@pytest.mark.parametrize("pattern", TESTED, ids=lambda pattern: pattern.name)
def test_patterns(pattern):
    found, touched, buffers = run(pattern.function, pattern.make(None, torch.float32, "cpu", small=True))
    assert touched.launches and len(buffers) > len(found.inputs)
    assert complaints(found, touched, buffers) == []


@pytest.mark.one_in(10)
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
    """Check that planted faults are found."""
    old, new, said = SABOTAGE[what]

    def sabotaged(code: str) -> str:
        changed, count = re.subn(old, new, on_cpu(code))
        assert count
        return changed

    monkeypatch.setattr(emitted, "on_cpu", sabotaged)
    (pattern,) = [p for p in TESTED if p.name == "rmsnorm_head_tail"]
    outcome = run(pattern.function, pattern.make(None, torch.float32, "cpu", small=True))
    assert any(said in line for line in complaints(*outcome)), complaints(*outcome)[:5]
