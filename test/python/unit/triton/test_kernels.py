"""Test what Bridge adds to a Triton kernel: rows that are kept, and stores under masks of their own."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest
import torch

from bridge.affine import ops_table
from bridge.lowering.triton.access_widths import AccessWidthMixin
from bridge.lowering.triton.kept_rows import KeptRowsMixin
from bridge.lowering.triton.kernels import LaneMixin, StridedAccessMixin, lane_kernel, persistent_kernel
from bridge.lowering.triton.loop_indices import LoopIndexMixin
from bridge.lowering.triton.reused_loads import ReusedLoadMixin
from bridge.lowering.triton.row_masks import RowMaskMixin
from bridge.lowering.triton.row_tails import RowTailMixin


class Base:
    """Stand in for Inductor's kernel: it notes its arguments, and its stores with the mask around them."""

    source = ""
    overrides = type("Overrides", (), {})
    current_node: object = "op0"

    def __init__(self, tiling, **kwargs):
        self.given, self.num_reduction = kwargs, 1
        self.mask, self.stored = None, []

    def codegen_kernel(self, name=None):
        return self.source

    def reduction(self, dtype, src_dtype, reduction_type, value):
        return reduction_type, value

    @contextlib.contextmanager
    def mask_loads(self, mask, value):
        self.mask, before = mask, self.mask
        yield
        self.mask = before

    def dense_size_list(self):
        return ["XBLOCK", "R0_BLOCK"]

    def store(self, name, index, value, mode=None):
        self.stored.append((name, value.text, self.mask))


class Lanes(LaneMixin, Base):
    """Stand for a kernel that has only guarded stores."""


def features(*names):
    return SimpleNamespace(scheduler_nodes=lambda: [SimpleNamespace(get_name=lambda name=name: name) for name in names])


def test_one_class_for_each_of_inductors():
    mixins = LoopIndexMixin, RowMaskMixin, ReusedLoadMixin, RowTailMixin, LaneMixin, StridedAccessMixin
    kernel = lane_kernel(Base)
    assert kernel is lane_kernel(Base)
    assert kernel.__mro__[1:10] == (*mixins, AccessWidthMixin, KeptRowsMixin, Base)


@pytest.mark.parametrize(("name", "given"), [("op1", {"override_persistent_reduction": True}), ("op2", {})])
def test_rows_of_named_nodes_are_kept(name, given):
    kernel = persistent_kernel(lane_kernel(Base), ["op1"])({}, features=features("op0", name))
    kernel.given.pop("features")
    assert kernel.given == given


def test_a_guarded_value_is_stored_under_its_mask_and_others_are_not():
    kernel = Lanes({}, features=features())
    value = SimpleNamespace(text="tmp0")
    guarded = kernel.reduction(torch.float32, torch.float32, ops_table.GUARDED, (value, "first lane"))
    kernel.store("buf0", 0, guarded)
    kernel.store("buf1", 0, value)
    assert kernel.stored == [("buf0", "tmp0", "first lane"), ("buf1", "tmp0", None)]
    assert kernel.num_reduction == 0


def test_what_was_stored_under_a_mask_is_stored_in_all_lanes_by_another_node():
    """Check that a value stored under a mask is stored in all lanes by another node.

    Only the first copy of repeated rows was written: what stored the others had the guarded value to load.
    """
    kernel = Lanes({}, features=features())
    guarded = kernel.reduction(torch.float32, torch.float32, ops_table.GUARDED, (SimpleNamespace(text="tmp0"), "first"))
    kernel.store("buf0", 0, guarded)
    kernel.current_node = "op1"
    again = kernel.reduction(torch.float32, torch.float32, ops_table.GUARDED, (guarded, "second"))
    kernel.store("buf1", 0, guarded)
    kernel.store("buf2", 0, again)
    kernel.current_node = "op2"
    kernel.store("buf3", 0, again)
    assert kernel.stored == [
        *(("buf0", "tmp0", "first"), ("buf1", "tmp0", None)),
        *(("buf2", "tmp0", "second"), ("buf3", "tmp0", None)),
    ]


def test_a_reduction_of_inductors_stays_inductors():
    kernel = Lanes({}, features=features())
    assert kernel.reduction(torch.float32, torch.float32, "sum", "tmp0") == ("sum", "tmp0")
    assert kernel.num_reduction == 1


class Row(Lanes):
    """Stand for a kernel that keeps a row of 64 lanes, outside of its reductions."""

    inside_reduction, compute, range_trees = False, None, (SimpleNamespace(is_reduction=True, prefix="r0_"),)

    def __init__(self):
        super().__init__({}, features=features())
        self.cse = SimpleNamespace(generate=lambda lines, text, dtype, shape: text)

    def dense_size_list(self):
        return ["XBLOCK", "R0_BLOCK"]


@pytest.mark.parametrize(
    ("dtype", "kind", "least"),
    [(torch.float32, "max", 'float("-inf")'), (torch.int8, "max", "-128"), (torch.bool, "any", "False")],
    ids=str,
)
def test_a_broadcast_is_the_extremum_of_one_segment(dtype, kind, least):
    kernel = Row()
    value = SimpleNamespace(dtype=dtype)
    found, text = kernel.reduction(dtype, dtype, f"{ops_table.BROADCAST}:2:16", value)
    assert found == kind
    assert text == f"tl.where(r0_index // 16 == 2, {value}, {least})"
    assert not kernel.inside_reduction


@pytest.mark.parametrize(("persistent", "usual"), [(True, "persistent_reduction"), (False, "reduction")])
def test_a_fixed_configuration_names_the_usual_heuristic_once(persistent, usual):
    kernel = Lanes({}, features=features())
    kernel.persistent_reduction = persistent
    kernel.source = "@triton_heuristics.fixed_config(\n@triton_heuristics.fixed_config("
    comment = f"# In the place of @triton_heuristics.{usual}\n"
    assert kernel.codegen_kernel() == comment + kernel.source
