"""Test three ways to the affine dialect, executed.

Bridge's translation, what its passes make of that, and torch-mlir's.

`python test/python/validation/fuzz.py --target oracle --seeds ...` runs more programs.
"""

from __future__ import annotations

import re

import differential_oracle
import pytest
import validate
from patterns import TESTED, Pattern
from programs import Program, generate

pytest.importorskip("torch_mlir", reason="torch-mlir has wheels for Linux on x86-64 only")

#: Patterns whose outputs are not all computed by the loops that Bridge translates, and why.
BY_PARTS = "returns a buffer that is filled by parts"
PARTLY_TRANSLATED = {"softmax_padded_rows": BY_PARTS, "softmax_padded_squares": BY_PARTS}

#: Seeds of programs of which Bridge translates all loops; what torch-mlir cannot translate would fail.
SEEDS = (0, 2, 5, 7, 8, 9, 11, 14, 18, 21, 31, 32, 34, 44, 47, 54)

CASES: dict[str, Pattern | Program] = {
    pattern.name: pattern for pattern in TESTED if pattern.name not in PARTLY_TRANSLATED
}
CASES.update({f"seed {seed}": generate(seed) for seed in SEEDS})


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    monkeypatch.setenv("BRIDGE_STRICT", "1")


@pytest.mark.one_in(15)
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_oracle(name):
    function, inputs = differential_oracle.float32(CASES[name])
    found = validate.record(function, inputs, dynamic=False)
    assert differential_oracle.disagreements(found, differential_oracle.affine_ir(CASES[name]), inputs) == []


def test_there_are_enough_of_them():
    assert len(CASES) >= 40


@pytest.mark.parametrize("name", PARTLY_TRANSLATED)
def test_partly_translated(name):
    (pattern,) = [p for p in TESTED if p.name == name]
    function, inputs = differential_oracle.float32(pattern)
    found = validate.record(function, inputs, dynamic=False)
    # Other releases of torch may leave nothing but loops.
    assert (
        validate.outputs_of(found) is None
        or differential_oracle.disagreements(found, differential_oracle.affine_ir(pattern), inputs) == []
    )


#: What would be a wrong translation, as a change of the translated IR: a pattern, what, by what.
SABOTAGE = {
    "offset of a half": ("rmsnorm_residual_chunk_swiglu", r"%arg(\d+) \+ 128\]", r"%arg\1 + 127]"),
    "length of a reduction": ("rmsnorm_residual_chunk_swiglu", r"to 256 iter_args", "to 255 iter_args"),
    "operation": ("layernorm_chunk_geglu", r"arith\.subf", "arith.addf"),
}


@pytest.mark.parametrize("what", SABOTAGE)
def test_a_wrong_translation_is_found(what):
    """Check the oracle: a comparison of the IR before and after the passes cannot see these."""
    name, old, new = SABOTAGE[what]
    function, inputs = differential_oracle.float32(CASES[name])
    found = validate.record(function, inputs, dynamic=False)
    (group,) = found.groups
    group.before, count = re.subn(old, new, group.before, count=1)
    assert count == 1
    group.after = validate.transformed(group, validate.EXACT[0])
    assert validate.differences(group) == []
    lines = differential_oracle.disagreements(found, differential_oracle.affine_ir(CASES[name]), inputs)
    assert {line.partition(", ")[2].partition(":")[0] for line in lines} == {"before the passes", "after the passes"}
