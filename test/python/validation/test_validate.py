"""Test translation validation of every pattern and of fuzzed programs.

The passes change no bit but by reassociation.
"""

from __future__ import annotations

import functools
import re

import pytest
import torch
import validate
from executed import execute
from fuzz import ROUNDING, error
from lookups import LOOKUPS, as_tuple, double
from patterns import TESTED
from programs import generate
from validate import EXACT

import bridge

#: Seeds of programs with a fusion, among them the dynamic, the 16-bit and the updating.
SEEDS = (1, 2, 6, 11, 14, 20, 29, 40, 41, 59, 65, 66, 98)

#: Patterns that return a buffer which is filled by parts, or of which torch 2.11 has a kernel in no group.
PARTLY_TRANSLATED = {"softmax_padded_rows", "softmax_padded_squares", "rmsnorm_interleaved_rope"}

every_pattern = pytest.mark.parametrize("pattern", TESTED, ids=lambda pattern: pattern.name)


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    monkeypatch.setenv("BRIDGE_STRICT", "1")


def left_alone(found: validate.Recorded) -> bool:
    """Return True if there was nothing to translate, as Inductor (of torch 2.11, say) makes one kernel by itself."""
    assert found.groups or bridge.report().kernels_before <= 1
    return not found.groups


def assert_eager(results, references, dtype: torch.dtype) -> None:
    for result, expected in zip(results, references, strict=True):
        if expected.is_floating_point() and expected.itemsize > 1:
            assert error(result, expected) <= ROUNDING[dtype]
        else:
            assert (result.double() - expected.double()).abs().max() <= 1


@pytest.mark.one_in(6)
@every_pattern
def test_patterns(pattern):
    inputs = pattern.make(None, torch.float32, "cpu", small=True)
    found = validate.record(pattern.function, inputs, dynamic=False)
    if left_alone(found):
        return
    assert validate.problems(found) == []
    results = validate.outputs_of(found)
    if results is None:
        assert pattern.name in PARTLY_TRANSLATED
        return
    references = pattern.function(*[t.double() for t in inputs])
    assert_eager(results, references if isinstance(references, tuple) else [references], torch.float32)


@pytest.mark.one_in(16)
@every_pattern
def test_patterns_in_16_bits_with_symbolic_rows(pattern):
    inputs = pattern.make(max(2, pattern.small.rows), torch.bfloat16, "cpu", small=True)  # one row is static
    if pattern.dynamic:
        pattern.mark_dynamic_rows(inputs)
    found = validate.record(pattern.function, inputs, pattern.dynamic)
    if left_alone(found):
        return
    assert validate.problems(found, EXACT[:1]) == []
    assert not pattern.dynamic or any("memref<?x" in group.before for group in found.groups)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", SEEDS)
def test_programs(seed):
    program = generate(seed)
    found = validate.record(program.function, program.inputs(), program.dynamic)
    assert validate.problems(found) == []
    results = validate.outputs_of(found)
    if results is not None:
        assert_eager(results, program.reference(), program.dtype)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", [7, 107, 111])
def test_programs_of_symbolic_width(seed):
    """Check programs of symbolic width, for the width that they are compiled for, and for twice that."""
    program = generate(seed, symbolic_widths=True)
    found = validate.record(program.function, program.inputs(), dynamic=True)
    assert any(group.doubled for group in found.groups) and validate.problems(found) == []


#: What would be a miscompile, as a change of the transformed IR: a pattern of the benchmarks, what, by what.
SABOTAGE = {
    "piece offset": ("rmsnorm_residual_chunk_swiglu", r"%arg6 \+ 128\]", "%arg6 + 127]"),
    "piece left out": (
        "rmsnorm_residual_chunk_swiglu",
        r"arith.addf %(\d+), %(\d+) : f32(\n\s+affine.yield)",
        r"arith.addf %\1, %\1 : f32\3",
    ),
    "combiner": ("rmsnorm_head_tail", r"arith.addf (%arg\d+), ", r"arith.subf \1, "),
    "guard": ("rmsnorm_head_tail", r"d0 - 24 >= 0", "d0 - 25 >= 0"),
    "row": (
        "rmsnorm_head_tail",
        r"affine.load (%arg\d+)\[%arg\d+\] : memref<7xf32>",
        r"affine.load \1[0] : memref<7xf32>",
    ),
}


class TestSabotage:
    """Test that planted faults are found."""

    @staticmethod
    @functools.cache
    def group(name: str) -> validate.Group:
        (pattern,) = [p for p in TESTED if p.name == name]
        return validate.record(pattern.function, pattern.make(None, torch.float32, "cpu", small=True), False).groups[0]

    def test_is_found_at_twice_the_size(self):
        """Check that a number in the place of a symbol is found: it is right only for the size compiled for."""
        program = generate(107, symbolic_widths=True)
        (group,) = validate.record(program.function, program.inputs(), dynamic=True).groups
        (size,) = group.sizes
        text, count = re.subn(r"to %arg\d+ ", f"to {size} ", group.after)
        assert count and validate.differences(group, text) == []
        assert validate.differences(group.doubled, text)

    @pytest.mark.parametrize("what", SABOTAGE)
    def test_is_found(self, what):
        name, old, new = SABOTAGE[what]
        group = self.group(name)
        text, count = re.subn(old, new, group.after, count=1)
        assert count == 1
        assert validate.differences(group) == []
        assert validate.differences(group, text)


def run(body: str, *buffers: torch.Tensor) -> None:
    types = {
        torch.float32: "f32",
        torch.bool: "i1",
        torch.int64: "i64",
        torch.uint8: "i8",
        torch.float8_e4m3fn: "f8E4M3FN",
    }
    shapes = [f"memref<{'x'.join([*map(str, b.shape), types[b.dtype]])}>" for b in buffers]
    arguments = ", ".join(f"%a{i}: {shape}" for i, shape in enumerate(shapes))
    for i, shape in enumerate(shapes):
        body = body.replace(f"MEM{i}", shape)
    execute(f"func.func @f({arguments}) {{\n{body}\nreturn\n}}", list(buffers), [])


class TestExecution:
    """Test that operations of the dialect mean what torch's do."""

    x = torch.tensor([0.5, -2.0, float("nan"), 3.0, float("nan")])

    def test_special_and_conversions(self):
        sigmoid, small, byte, flag = (
            torch.empty(5),
            *(torch.empty(5, dtype=d) for d in (torch.float8_e4m3fn, torch.uint8, torch.bool)),
        )
        run(
            """
            affine.for %i = 0 to 5 {
              %x = affine.load %a0[%i] : MEM0
              %y = bridge.special sigmoid %x : (f32) -> f32
              affine.store %y, %a1[%i] : MEM1
              %e = arith.truncf %x : f32 to f8E4M3FN
              affine.store %e, %a2[%i] : MEM2
              %z = affine.load %a1[%i] : MEM1
              %hundred = arith.constant 200.0 : f32
              %s = arith.mulf %z, %hundred : f32
              %u = bridge.convert %s {from = "float32", to = "uint8"} : f32 -> i8
              affine.store %u, %a3[%i] : MEM3
              %b = arith.cmpf une, %x, %x : f32
              affine.store %b, %a4[%i] : MEM4
            }""",
            self.x.nan_to_num(1.0),
            sigmoid,
            small,
            byte,
            flag,
        )
        x = self.x.nan_to_num(1.0)
        assert torch.equal(sigmoid, torch.sigmoid(x))
        assert torch.equal(small.float(), x.to(torch.float8_e4m3fn).float())
        assert torch.equal(byte, (sigmoid * 200).to(torch.uint8)) and byte.max() > 127
        assert not flag.any()

    @pytest.mark.parametrize("kind", ["argmax", "argmin"])
    @pytest.mark.parametrize("x", [x, x[:2].repeat(3)[:5], torch.ones(5)], ids=["nan", "numbers", "ties"])
    def test_argmax(self, kind, x):
        index = torch.empty((), dtype=torch.int64)
        start = "0xFF800000" if kind == "argmax" else "0x7F800000"
        run(
            f"""
            %v = arith.constant {start} : f32
            %n = arith.constant 9223372036854775807 : i64
            %r:2 = affine.for %i = 0 to 5 iter_args(%best = %v, %at = %n) -> (f32, i64) {{
              %x = affine.load %a0[%i] : MEM0
              %j = arith.index_cast %i : index to i64
              %c:2 = bridge.combine {kind} (%best, %at), (%x, %j) : f32, i64
              affine.yield %c#0, %c#1 : f32, i64
            }}
            affine.store %r#1, %a1[] : MEM1""",
            x,
            index,
        )
        assert index == getattr(torch, kind)(x)

    def test_welford_and_softmax(self):
        x, out = torch.randn(5, generator=torch.Generator().manual_seed(0)), torch.empty(2)
        run(
            """
            %zero = arith.constant 0.0 : f32
            %one = arith.constant 1.0 : f32
            %low = arith.constant 0xFF800000 : f32
            %r:5 = affine.for %i = 0 to 5 iter_args(%m = %zero, %q = %zero, %w = %zero, %top = %low, %s = %zero)
                -> (f32, f32, f32, f32, f32) {
              %x = affine.load %a0[%i] : MEM0
              %c:3 = bridge.combine welford (%m, %q, %w), (%x, %zero, %one) : f32, f32, f32
              %d:2 = bridge.combine online_softmax (%top, %s), (%x, %one) : f32, f32
              affine.yield %c#0, %c#1, %c#2, %d#0, %d#1 : f32, f32, f32, f32, f32
            }
            %variance = arith.divf %r#1, %r#2 : f32
            affine.store %variance, %a1[0] : MEM1
            %log = math.log %r#4 : f32
            %sum = arith.addf %r#3, %log : f32
            affine.store %sum, %a1[1] : MEM1""",
            x,
            out,
        )
        torch.testing.assert_close(out, torch.stack([x.var(correction=0), torch.logsumexp(x, 0)]))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("lookup", LOOKUPS, ids=lambda lookup: lookup.function.__name__)
def test_lookups(lookup):
    found = validate.record(lookup.function, lookup.inputs, dynamic=False)
    assert any("bridge.gather" in group.after for group in found.groups)
    assert validate.problems(found) == []
    references = as_tuple(lookup.function(*double(lookup.inputs)))
    assert_eager(validate.outputs_of(found), references, torch.float32)
