"""Test some programs of fuzz.py that Bridge makes kernels of.

`python test/python/validation/fuzz.py --seeds ...` runs more.
"""

from __future__ import annotations

import secrets
from dataclasses import replace

import fuzz
import pytest
from programs import generate

import bridge
from bridge.backend import bridge as bridge_backend
from bridge.reasons import Reason

#: Seeds by what runs them: what is emitted for a GPU, Triton for the CPU, C++.
SEEDS = {
    "gpu": (0, 2, 11, 12, 13, 14, 18, 20, 26, 29, 32, 34, 35, 43, 4441, 6179, 6460, 6889, 9240, 20266, 20747),
    "interpreted": (47, 54, 55, 57, 64, 13192),
    "cpu": (67, 68, 79),
}

CASES = [(target, seed) for target, seeds in SEEDS.items() for seed in seeds]


@pytest.mark.one_in(8)
@pytest.mark.parametrize("target, seed", CASES, ids=[f"{target}-{seed}" for target, seed in CASES])
def test_no_worse_than_inductor(target, seed, compiler, monkeypatch):
    monkeypatch.setenv("BRIDGE_STRICT", "1")
    program = generate(seed)
    outcome = fuzz.check(program, target)
    assert outcome.problem is None, f"{outcome.problem}\n{program}"


@pytest.mark.parametrize("kind", [{}, {"symbolic_widths": True}, {"padded_rows": True}, {"lookups": True}], ids=str)
def test_programs_that_nobody_has_seen(kind, compiler, monkeypatch, request):
    """Check random programs that nobody has seen.

    The seed of one that fails is in the message, and belongs into SEEDS with what mends it.
    """
    monkeypatch.setenv("BRIDGE_STRICT", "1")
    first = secrets.randbelow(2**31)
    for seed in range(first, first + (3 if request.config.getoption("--all") else 1)):
        program = generate(seed, **kind)
        outcome = fuzz.check(program, "gpu")
        assert outcome.problem is None, f"{outcome.problem}\n{program}"


#: The same of programs whose width is symbolic, called with two; 117 says nothing of its width.
SYMBOLIC = [("gpu", 103), ("gpu", 111), ("gpu", 117), ("interpreted", 103), ("cpu", 104)]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("target, seed", SYMBOLIC, ids=[f"{target}-{seed}" for target, seed in SYMBOLIC])
def test_symbolic_width(target, seed, compiler, monkeypatch):
    monkeypatch.setenv("BRIDGE_STRICT", "1")
    program = generate(seed, symbolic_widths=True)
    outcome = fuzz.check(program, target)
    assert outcome.fused and outcome.problem is None, f"{outcome.problem}\n{program}"


def test_symbol_left_out_of_a_subscript(compiler, monkeypatch):
    """Check that a symbol is not left out of a subscript.

    A sum and its norm, turned by half of a symbolic width: j + n / 2 was taken for j, and the lanes for the same.
    """
    monkeypatch.setenv("BRIDGE_STRICT", "1")
    program = generate(818274514, symbolic_widths=True)
    assert fuzz.check(program, "gpu").problem is None


@pytest.mark.in_turn(2)
def test_bounded_row_in_a_shared_launch(compiler, monkeypatch):
    """Check a bounded row of symbolic length in a shared launch: it is persistent alone, and cannot be in a launch."""
    monkeypatch.setenv("BRIDGE_STRICT", "1")
    outcome = fuzz.check(generate(130876, symbolic_widths=True), "gpu")
    assert outcome.fused and outcome.problem is None


@pytest.mark.parametrize("multiple, fused", [(1, False), (2, True)])
def test_symbolic_width_wants_its_guard(multiple, fused, monkeypatch):
    """Check that half of a symbolic width is fused with a guard, or else refused with its name; both are right."""
    monkeypatch.setenv("BRIDGE_STRICT", "1")
    program = replace(generate(107, symbolic_widths=True), multiple=multiple)
    results = fuzz.run_gpu(program, bridge_backend)
    assert all(
        fuzz.error(r, e) <= fuzz.ROUNDING[program.dtype] for r, e in zip(results, program.reference(), strict=True)
    )
    (group,) = bridge.report().groups
    assert group.fused is fused
    assert fused or (group.reason is Reason.dynamic_extent and "% 2 == 0" in group.detail)


def test_programs_of_symbolic_width_are_for_two():
    """Check that programs of symbolic width are for two widths, with the same lines; some have a guard."""
    programs = [generate(seed, symbolic_widths=True) for seed in range(40)]
    for program in programs:
        widths = [shapes["x"][-1] for shapes in (program.shapes, program.other_shapes)]
        assert widths[0] != widths[1] and not any(width % program.multiple for width in widths)
        assert len(program.reference()) == len(program.result_names) == 2 * len(program.outputs)
    assert 10 < sum("torch._check" in program.source for program in programs) < 40


def test_a_miscompile_of_another_width_is_found(monkeypatch):
    """Check that a miscompile of another width is found where the width that was compiled for is right."""

    def wrong(program, backend):
        results = [t.to(program.dtype) for t in program.reference()]
        if backend != "inductor":
            results[-1].view(-1)[0] += 1
        return tuple(results)

    monkeypatch.setitem(fuzz.RUNNERS, "wrong", wrong)
    monkeypatch.setattr(fuzz, "fusing", lambda fused, **_: fused.append(True))
    assert "of other widths: error" in fuzz.check(generate(107, symbolic_widths=True), "wrong").problem


def test_a_miscompile_is_found(monkeypatch):
    """Check the test: one wrong element is found."""

    def wrong(program, backend):
        results = [t.clone() for t in program.reference()]
        if backend != "inductor":
            results[0].view(-1)[0] += 1
        return tuple(t.to(program.dtype) if t.is_floating_point() else t for t in results)

    monkeypatch.setitem(fuzz.RUNNERS, "wrong", wrong)
    program = generate(0)
    monkeypatch.setattr(fuzz, "fusing", lambda fused, **_: fused.append(True))
    assert "error" in fuzz.check(program, "wrong").problem


def test_shrinking_keeps_the_failure():
    """Check that shrinking keeps the failure: what fails because of its tanh ends as little else."""
    program = next(p for p in map(generate, range(100)) if "torch.tanh" in p.source and len(p.lines) > 4)
    small = fuzz.shrink(program, lambda p: "torch.tanh" in p.source)
    assert len(small.lines) == 1
