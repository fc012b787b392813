"""Test what passes do to a module, and what they say."""

from __future__ import annotations

import re

import pytest
import sympy
from paths import ROOT

from bridge.affine.mlir_runtime import context, ir
from bridge.affine.pass_manager import transform
from bridge.lowering.lift.index import apply_map
from bridge.reasons import Reason, Unsupported

UNUSED = """
func.func @f(%x: f32) -> f32 {
  %y = arith.negf %x : f32
  return %x : f32
}
"""

#: The second nest reads what later iterations of the first write.
REVERSED = """
func.func @f(%in: memref<64xf32>, %t: memref<64xf32>, %out: memref<64xf32>) {
  affine.for %i = 0 to 64 {
    %x = affine.load %in[%i] : memref<64xf32>
    affine.store %x, %t[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    %x = affine.load %t[-%i + 63] : memref<64xf32>
    affine.store %x, %out[%i] : memref<64xf32>
  }
  return
}
"""


@pytest.fixture
def parse():
    with context(), ir.Location.unknown():
        yield ir.Module.parse


def test_the_module_is_transformed_in_place(parse):
    module = parse(UNUSED)
    assert transform(module, "builtin.module(canonicalize)") == []
    assert "arith.negf" not in str(module)


def test_modules_are_printed_after_passes_that_change_them(parse, tmp_path):
    transform(parse(UNUSED), "builtin.module(canonicalize,cse)", tmp_path)
    (printed,) = (file for file in tmp_path.rglob("*") if file.is_file())
    assert "canonicalize" in printed.name
    assert "arith.negf" not in printed.read_text()


def test_a_refusal_is_a_remark_with_an_example(parse):
    (remark, *_) = transform(parse(REVERSED), "builtin.module(func.func(bridge-fuse-bands))")
    assert remark.reason == Reason.loop_carried_dependence.name
    assert "[" not in remark.text
    assert len(remark.notes) == 2
    assert all(text.startswith("iteration (") for text, _ in remark.notes)


def test_a_pipeline_that_does_not_parse_is_refused(parse):
    with pytest.raises(Unsupported, match="no-such-pass") as refusal:
        transform(parse(UNUSED), "builtin.module(no-such-pass)")
    assert refusal.value.reason is Reason.pass_failed
    assert "\n" not in str(refusal.value)


def modules_of(file):
    return [ir.Module.parse(text) for text in file.read_text().split("// -----")]


def accesses_of(module):
    """Return the loads and stores of a module by their place."""
    found = {}

    def visit(operation):
        if operation.name in ("affine.load", "affine.store"):
            found[str(operation.location)] = operation.operation
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def element_of(access, iteration):
    """Return the subscripts of an access in an iteration of the loops around it, all of which are to be given."""
    variables: list = []
    parent = access.parent
    while parent.operation.name != "func.func":
        if parent.operation.name == "affine.for":
            variables.insert(0, parent.operation.regions[0].blocks[0].arguments[0])
        parent = parent.operation.parent
    values = dict(zip(variables, map(sympy.Integer, iteration), strict=True))
    operands = list(access.operands)[1 + (access.name == "affine.store") :]
    return apply_map(access.attributes["map"].value, [values[operand] for operand in operands])


def test_examples_name_iterations_of_the_loops_before_the_passes(parse):
    """Check that a named iteration accesses the element that it names, whatever the passes made of the loops."""
    checked = 0
    for module in modules_of(ROOT / "test" / "lit" / "original-iterations.mlir"):
        before = ir.Module.parse(module.operation.get_asm(enable_debug_info=True))
        given = accesses_of(before)
        for remark in transform(module, "builtin.module(bridge-fuse)"):
            element = re.search(r"element \[(.*?)\]", remark.notes[0][0])[1] if remark.notes else None
            for words, place in remark.notes:
                iteration = re.match(r"iteration \((.*?)\)", words)[1].split(", ")
                assert [str(index) for index in element_of(given[place], iteration)] == element.split(", ")
                checked += 1
    assert checked == 2 * 5
