"""Test what an affine function is in a graph.

An operator with shapes and no kernel, and a hook while it is compiled.
"""

from __future__ import annotations

import pytest
import torch

from bridge import inductor
from bridge.lowering.affine_import.functions import PATCHES, filled, raising_refusals, register
from bridge.lowering.affine_import.standalone import read_function
from bridge.reasons import Reason, Unsupported

DOUBLED = """func.func @f(%x: memref<8xf32>, %out: memref<8xf64>) { affine.for %i = 0 to 8 {
  %v = affine.load %x[%i] : memref<8xf32>
  %w = arith.extf %v : f32 to f64
  affine.store %w, %out[%i] : memref<8xf64> } return }"""


def wrapped(error):
    from torch._inductor.exc import InductorError

    return InductorError(error, None)


def test_the_operator_knows_shapes_and_computes_nothing():
    from torch._subclasses.fake_tensor import FakeTensorMode

    key = register(read_function(DOUBLED))
    with FakeTensorMode():
        (out,) = torch.ops.bridge.affine([torch.empty(8)], key)
    assert (tuple(out.shape), out.dtype) == ((8,), torch.float64)
    with pytest.raises(NotImplementedError, match="runs compiled only"):
        torch.ops.bridge.affine([torch.empty(8)], key)


def test_a_refusal_is_raised_as_it_was():
    refusal = Unsupported(Reason.not_liftable, "scan")
    with pytest.raises(Unsupported) as raised, raising_refusals():
        raise wrapped(refusal)
    assert raised.value is refusal


def test_a_refusal_while_a_node_is_lowered_is_raised_as_it_was():
    """Check that a refusal during lowering is raised as it was: Inductor keeps only its words in its own error."""
    refusal = Unsupported(Reason.not_liftable, "a store under a guard")
    try:
        try:
            raise refusal
        except Unsupported as first:
            raise RuntimeError(f"LoweringException: {first}") from None
    except RuntimeError as second:
        lowering = second
    with pytest.raises(Unsupported) as raised, raising_refusals():
        raise wrapped(lowering)
    assert raised.value is refusal


def test_another_error_stays_inductors():
    error = wrapped(KeyError("buf0"))
    with pytest.raises(type(error)) as raised, raising_refusals():
        raise error
    assert raised.value is error


def test_the_hook_is_there_in_the_block_only(config):
    before = getattr(config, inductor.HOOK)
    with filled():
        assert getattr(config, inductor.HOOK) is not None
    assert getattr(config, inductor.HOOK) is before is None


def test_what_is_patched_is_an_option_of_inductors(config):
    assert all(type(getattr(config, name)) is type(value) for name, value in PATCHES.items())
