"""What passes do to a module, and what they say."""

from __future__ import annotations

import pytest

from bridge.affine.mlir_runtime import context, ir
from bridge.affine.pass_manager import transform
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
