"""Test that saved values that a backward's kernels could compute by themselves are noted in the report."""

from __future__ import annotations

import functools

import pytest
import torch
import torch.nn.functional as F
from training import graphs

import bridge
from bridge.backend import bridge as bridge_backend
from bridge.graph_passes.saved_values import SavedValue
from bridge.scheduling import recomputation

ROWS, COLUMNS = 512, 1024
VALUE = SavedValue("pad", 1, "pad (model.py:3)", frozenset({"x"}), {"w": 10})


def notes(function, *shapes):
    inputs = [torch.randn(shape).requires_grad_() for shape in shapes]
    graphs(function, inputs, functools.partial(bridge_backend, options={"training": True}))
    return bridge.report().notes


@pytest.fixture(autouse=True)
def sizes(monkeypatch, request):
    if "touched" in request.fixturenames:
        monkeypatch.setattr(recomputation.inductor, "buffer_bytes", {"pad": 100, "x": 80}.__getitem__)


@pytest.mark.parametrize(
    ("touched", "spared"),
    [
        ([{"pad": 100, "x": 80, "w": 10}], 200),  # one access to store it, and one to load it
        ([{"pad": 100, "x": 80}], 190),  # the small input has to be loaded
        ([{"pad": 100}, {"pad": 100, "x": 80, "w": 10}], 210),
        ([{"x": 80}], 100),
        ([{"pad": 20}], 30),
    ],
)
def test_bytes_that_are_not_moved(touched, spared):
    assert recomputation.bytes_spared("pad", VALUE, touched) == spared


@pytest.mark.parametrize("touched", [[{"pad": 100, "x": 80, "w": 10}]])
def test_what_the_forward_reads_again_is_stored_in_any_case(touched):
    value = SavedValue("pad", 1, "pad", VALUE.saved, VALUE.inputs, read_again=True)
    assert recomputation.bytes_spared("pad", value, touched) == 100


def test_padded_rows_of_a_norm_are_noted():
    def function(x, w):
        return F.rms_norm(F.pad(x, (0, 24)), (COLUMNS,), w, 1e-6)

    (note,) = notes(function, (ROWS, COLUMNS - 24), (COLUMNS,))
    assert "constant_pad_nd (test_recomputation.py:" in note and "2.0 MB" in note
    assert "torch.utils.checkpoint" in note and "torch.utils.checkpoint" in str(bridge.report())
    assert note in bridge.report().details()


def test_a_product_that_is_saved_is_not_noted():
    def function(x, a, w):
        return F.rms_norm(x @ a, (COLUMNS,), w, 1e-6)

    assert notes(function, (ROWS, 64), (64, COLUMNS), (COLUMNS,)) == []


def test_a_value_that_a_library_call_reads_is_not_noted():
    def function(x, a):
        return F.pad(x, (0, 24)) @ a  # the gradient of `a` is a product of the padded rows

    assert notes(function, (ROWS, COLUMNS - 24), (COLUMNS, 64)) == []
