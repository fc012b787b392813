"""Test the second opinion: isl agrees with what the passes make of every pattern, and finds what is wrong in others."""

from __future__ import annotations

import pytest
import torch
from patterns import TESTED

import bridge
from bridge import offline
from bridge.affine.isl_verifier import Recheck
from bridge.affine.mlir_runtime import context, ir
from bridge.backend import bridge as bridge_backend
from bridge.options import OptionError, make_options
from bridge.reasons import InvariantError, Reason

BEFORE = """
func.func @f(%in: memref<8x16xf32>, %t: memref<8x16xf32>, %out: memref<8x16xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 16 {
      %x = affine.load %in[%i, %j] : memref<8x16xf32>
      affine.store %x, %t[%i, %j] : memref<8x16xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 16 {
      %x = affine.load %t[%i, %j] : memref<8x16xf32>
      affine.store %x, %out[%i, %j] : memref<8x16xf32>
    }
  }
  return
}
"""

FUSED = """
func.func @f(%in: memref<8x16xf32>, %t: memref<8x16xf32>, %out: memref<8x16xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 16 {
      %x = affine.load %in[%i, %j] : memref<8x16xf32>
      affine.store %x, %t[TEMPORARY] : memref<8x16xf32>
    }
    affine.for %j = 0 to 16 {
      %x = affine.load %t[READ] : memref<8x16xf32>
      affine.store %x, %out[WRITTEN] : memref<8x16xf32>
    }
  } {bridge.band}
  return
}
"""


def verify(temporary="%i, %j", read="%i, %j", written="%i, %j"):
    text = FUSED.replace("TEMPORARY", temporary).replace("READ", read).replace("WRITTEN", written)
    with context(), ir.Location.unknown():
        return Recheck(ir.Module.parse(BEFORE)).verify(ir.Module.parse(text))


GATHER = """
func.func @f(%table: memref<8x16xf32>, %ids: memref<8xi64>, %out: memref<8x16xf32>) {
  %rows = arith.constant 8 : index
  %stride = arith.constant 16 : index
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 16 {
      %id = affine.load %ids[%i] : memref<8xi64>
      %x = bridge.gather FROM[%j] at (%id) of (%rows) by (%stride)
          {checks = array<i1: true>, wraps = array<i1: true>} : memref<8x16xf32>, i64
      affine.store %x, %out[%i, %j] : memref<8x16xf32>
    }
  } {bridge.band}
  return
}
"""


def test_what_is_gathered_is_only_read():
    with context(), ir.Location.unknown():
        right, wrong = (ir.Module.parse(GATHER.replace("FROM", memref)) for memref in ("%table", "%out"))
        assert "gathers: 1 buffers, which are only read" in Recheck(right).verify(right)
        with pytest.raises(InvariantError, match="argument 2 is written, and read at places which depend on data"):
            Recheck(wrong).verify(wrong)


def test_what_is_right_is_certified():
    assert verify() == [
        "writes: 2 buffers, every element as before and once",
        "bounds: 4 accesses inside their buffers",
        "band of 1 loops: 3 pairs of accesses, no two iterations meet",
        "lanes: 1 pairs of a store and a load, each in one lane",
    ]


def test_any_order_of_rows_and_lanes_is_right():
    mirrored = "7 - %i, 15 - %j"
    assert verify(mirrored, mirrored, "%i, (%j + 3) mod 16")
    assert verify("%i, -%j + 15", "%i, %j * -1 + 15")


BROADCAST = """
func.func @f(%in: memref<8x16xf32>, %t: memref<8x4xf32>, %out: memref<8x16xf32>) ATTRIBUTES {
  affine.for %i = 0 to 8 {
    affine.for %s = 0 to 4 {
      %x = affine.load %in[%i, %s * 4] : memref<8x16xf32>
      FIRST
      affine.store %x, %t[%i, %s] : memref<8x4xf32>
    }
    affine.for %j = 0 to 16 {
      %x = affine.load %t[READ] : memref<8x4xf32>
      affine.store %x, %out[%i, %j] : memref<8x16xf32>
    }
  } {bridge.band}
  return
}
"""


def verify_broadcast(read="%i, 2", first="", attributes="attributes {bridge.rows_of_segments}"):
    text = BROADCAST.replace("READ", read).replace("FIRST", first).replace("ATTRIBUTES", attributes)
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        return Recheck(module).verify(module)


def test_what_all_lanes_read_of_one_segment_is_certified():
    assert verify_broadcast()[-1].startswith("lanes: 1 pairs")
    assert verify_broadcast(read="%i, %i mod 4")[-1].startswith("lanes: 1 pairs")


@pytest.mark.parametrize(
    ("accesses", "complaint"),
    [
        ({"attributes": ""}, "two iterations of a band meet"),
        ({"read": "%i, %j mod 4"}, "two iterations of a band meet"),
        ({"first": "%y = affine.load %t[%i, 2] : memref<8x4xf32>"}, "two iterations of a band meet"),
        ({"read": "7 - %i, 2"}, "two iterations of a band meet"),
    ],
    ids=["without rows of segments", "several segments", "before it is there", "of another row"],
)
def test_what_is_no_broadcast_is_found(accesses, complaint):
    with pytest.raises(InvariantError, match=complaint):
        verify_broadcast(**accesses)


@pytest.mark.parametrize(
    ("accesses", "complaint"),
    [
        ({"read": "7 - %i, %j"}, "two iterations of a band meet"),
        ({"read": "%i, 15 - %j"}, "two iterations of a band meet"),
        ({"written": "%i, %j floordiv 2"}, "elements of argument 2"),
        ({"written": "%i, 0"}, "elements of argument 2"),
        ({"read": "%i, %j + 1"}, "outside its buffer"),
        ({"temporary": "%i, 2 * (%j floordiv 2)"}, "elements of argument 1"),
    ],
    ids=lambda value: str(value),
)
def test_what_is_wrong_is_found(accesses, complaint):
    with pytest.raises(InvariantError, match=complaint):
        verify(**accesses)


TWICE = """
func.func @f(%in: memref<8x16xf32>, %t: memref<8x16xf32>, %out: memref<8x16xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 16 {
      %x = affine.load %in[%i, %j] : memref<8x16xf32>
      affine.store %x, %t[%i, %j] : memref<8x16xf32>
      affine.if affine_set<(d0) : (d0 - 8 >= 0)>(%j) {
        affine.store %x, %t[%i, %j] : memref<8x16xf32>
      }
      affine.store %x, %out[%i, %j] : memref<8x16xf32>
    }
  } {bridge.band}
  return
}
"""


def test_two_stores_to_one_element_are_found():
    with context(), ir.Location.unknown():
        recheck = Recheck(ir.Module.parse(BEFORE))
        with pytest.raises(InvariantError, match="written by two stores"):
            recheck.verify(ir.Module.parse(TWICE))


def test_guards_and_their_other_branch():
    """Check that two branches that share the elements are accepted: each element is written once."""
    text = TWICE.replace("      affine.store %x, %t[%i, %j] : memref<8x16xf32>\n      affine.if", "      affine.if")
    text = text.replace(
        "      }\n", "      } else {\n        affine.store %x, %t[%i, %j] : memref<8x16xf32>\n      }\n", 1
    )
    with context(), ir.Location.unknown():
        assert Recheck(ir.Module.parse(BEFORE)).verify(ir.Module.parse(text))


def test_refusal_of_isl_leaves_the_kernels_apart(monkeypatch):
    def refuse(self, module):
        raise InvariantError("no")

    monkeypatch.setattr(Recheck, "verify", refuse)
    pattern = TESTED[0]

    def lenient(gm, inputs):
        return bridge_backend(gm, inputs, options={"recheck": True, "strict": False})

    inputs = pattern.make(None, torch.bfloat16, "cpu", small=True)
    with pytest.warns(RuntimeWarning, match="recheck_failed"):
        assert offline.compile_for_gpu(pattern.function, inputs, compile_fx=lenient).n_kernels == 2
    assert bridge.report().groups[0].reason is Reason.recheck_failed


def test_islpy_is_asked_for(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(OptionError, match="needs islpy"):
        make_options({"recheck": True})


#: What bridge-unroll-and-jam makes of the second loop: an iteration computes two elements, of each half of the row.
SHARED = FUSED.replace(
    """    affine.for %j = 0 to 16 {
      %x = affine.load %t[READ] : memref<8x16xf32>
      affine.store %x, %out[WRITTEN] : memref<8x16xf32>
    }
  } {bridge.band}""",
    """    affine.for %j = 0 to 8 {
      %x = affine.load %t[FIRST] : memref<8x16xf32>
      affine.store %x, %out[%i, %j] : memref<8x16xf32>
      %y = affine.load %t[SECOND] : memref<8x16xf32>
      affine.store %y, %out[WRITTEN] : memref<8x16xf32>
    }
  } {bridge.band}""",
)


def verify_shared(first="%i, %j", second="%i, %j + 8", written="%i, %j + 8", temporary="%i, %j"):
    text = SHARED.replace("TEMPORARY", temporary).replace("FIRST", first).replace("SECOND", second)
    with context(), ir.Location.unknown():
        return Recheck(ir.Module.parse(BEFORE)).verify(ir.Module.parse(text.replace("WRITTEN", written)))


def test_a_row_value_for_several_elements_is_certified():
    assert verify_shared()[-1] == "lanes: 2 pairs of a store and a load, each in one lane"


@pytest.mark.parametrize(
    ("accesses", "complaint"),
    [
        ({"second": "%i, %j"}, "two iterations of a band meet"),
        ({"first": "%i, %j + 8"}, "two iterations of a band meet"),
        ({"first": "%i, %j + 8", "second": "%i, %j"}, "two iterations of a band meet"),
        ({"second": "%i, 15 - %j"}, "two iterations of a band meet"),
        ({"written": "%i, %j"}, "elements of argument 2"),
        ({"temporary": "%i, 15 - %j"}, "two iterations of a band meet"),
    ],
    ids=str,
)
def test_a_row_value_for_the_wrong_elements_is_found(accesses, complaint):
    with pytest.raises(InvariantError, match=complaint):
        verify_shared(**accesses)


#: A sum of the halves of a row, which are then overwritten: two accesses an iteration, and nothing was unrolled.
OVERWRITTEN = """
func.func @f(%row: memref<8x16xf32>, %in: memref<8x16xf32>, %sum: memref<8xf32>) {
  affine.for %i = 0 to 8 {
    %zero = arith.constant 0.0 : f32
    %total = affine.for %j = 0 to 8 iter_args(%state = %zero) -> (f32) {
      %x = affine.load %row[FIRST] : memref<8x16xf32>
      %y = affine.load %row[SECOND] : memref<8x16xf32>
      %both = arith.addf %x, %y : f32
      %next = arith.addf %state, %both : f32
      affine.yield %next : f32
    }
    affine.store %total, %sum[%i] : memref<8xf32>
    affine.for %j = 0 to 8 {
      %x = affine.load %in[%i, %j + 8] : memref<8x16xf32>
      affine.store %x, %row[%i, %j] : memref<8x16xf32>
      %y = affine.load %in[%i, %j] : memref<8x16xf32>
      affine.store %y, %row[%i, %j + 8] : memref<8x16xf32>
    }
  } {bridge.band}
  return
}
"""


def verify_overwritten(first, second):
    text = OVERWRITTEN.replace("FIRST", first).replace("SECOND", second)
    with context(), ir.Location.unknown():
        return Recheck(ir.Module.parse(text)).verify(ir.Module.parse(text))


def test_a_sum_of_halves_that_are_overwritten_is_certified():
    """Check that a sum of halves that are overwritten is certified: both halves are in one lane.

    The stores of halves looked like unrolled ones, and the sum did not.
    """
    assert verify_overwritten("%i, %j", "%i, %j + 8")[-1] == "lanes: 4 pairs of a store and a load, each in one lane"


#: Halves of a row are scaled, each by the other, and both are overwritten.
MIXED = """
func.func @f(%row: memref<8x16xf32>, %out: memref<8x16xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 8 {
      %x = affine.load %row[%i, %j] : memref<8x16xf32>
      %y = affine.load %row[OTHER] : memref<8x16xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %out[%i, %j] : memref<8x16xf32>
      affine.store %y, %out[%i, %j + 8] : memref<8x16xf32>
    }
    affine.for %j = 0 to 8 {
      %x = affine.load %row[%i, %j] : memref<8x16xf32>
      %y = affine.load %row[%i, %j + 8] : memref<8x16xf32>
      affine.store %y, %row[%i, %j] : memref<8x16xf32>
      affine.store %x, %row[%i, %j + 8] : memref<8x16xf32>
    }
  } {bridge.band}
  return
}
"""


def verify_mixed(other):
    with context(), ir.Location.unknown():
        text = MIXED.replace("OTHER", other)
        return Recheck(ir.Module.parse(text)).verify(ir.Module.parse(text))


def test_halves_that_read_each_other_before_both_are_overwritten_are_certified():
    """Check that an iteration that reads and overwrites both halves is certified as one lane.

    It was taken for two lanes, of which one overwrites what the other reads.
    """
    assert verify_mixed("%i, %j + 8")[-1] == "lanes: 8 pairs of a store and a load, each in one lane"


def test_halves_that_read_another_lane_before_both_are_overwritten_are_found():
    with pytest.raises(InvariantError, match="two iterations of a band meet"):
        verify_mixed("%i, 15 - %j")


@pytest.mark.parametrize(("first", "second"), [("%i, 7 - %j", "%i, %j + 8"), ("%i, %j", "%i, 15 - %j")])
def test_a_sum_in_lanes_that_others_overwrite_is_found(first, second):
    with pytest.raises(InvariantError, match="its lanes are not those of the store"):
        verify_overwritten(first, second)


def rechecked(gm, inputs):
    return bridge_backend(gm, inputs, options={"recheck": True, "strict": True})


def residual_layer_norm(x, residual):
    hidden = x + residual
    return hidden, torch.nn.functional.layer_norm(hidden, hidden.shape[-1:])


def test_residual_and_layer_norm_is_certified_on_a_cpu(compiler):
    """Check that a residual and a layer norm are certified for C++, which computes several elements for a row's value.

    Whether it is emitted then is another question: the loops of halves come apart in Inductor's C++.
    """
    inputs = [torch.randn(128, 768, dtype=torch.bfloat16) for _ in range(2)]
    ours = compiler(residual_layer_norm, backend=rechecked, dynamic=False)(*inputs)
    (group,) = bridge.report().groups
    assert any(line.startswith("lanes: ") for line in group.certificate)
    assert group.fused or "its own loops" in group.detail
    expected = residual_layer_norm(*(x.double() for x in inputs))
    torch.testing.assert_close(ours, expected, check_dtype=False, rtol=1e-2, atol=1e-2)
