"""Test which values that a forward saves could be computed again from others, without a sum or a library call."""

from __future__ import annotations

import functools

import pytest
import torch
import torch.nn.functional as F
from training import graphs

from bridge import graph_passes
from bridge.backend import bridge as bridge_backend

ROWS, COLUMNS = 32, 48


@pytest.fixture
def found(monkeypatch):
    """Return a list of what is found in each forward that is compiled."""
    seen: list[graph_passes.SavedValue] = []
    given = graph_passes.saved_values

    def watched(graph):
        values = list(given(graph))
        seen.extend(values)
        yield from values

    monkeypatch.setattr(graph_passes, "saved_values", watched)
    return seen


def compiled(function, *shapes):
    inputs = [torch.randn(shape).requires_grad_() for shape in shapes]
    graphs(function, inputs, functools.partial(bridge_backend, options={"training": True}))


def padded_norm(x, w):
    return F.rms_norm(F.pad(x, (0, 16)), (COLUMNS,), w, 1e-6)


def test_a_padded_row_is_found_with_its_input(found):
    compiled(padded_norm, (ROWS, COLUMNS - 16), (COLUMNS,))
    (value,) = found
    assert value.name == "constant_pad_nd" and value.saved == frozenset() and not value.read_again
    assert value.inputs == {"primals_1": ROWS * (COLUMNS - 16) * 4}
    assert "test_saved_values.py" in value.place


def test_what_a_saved_value_is_computed_from_may_be_saved_too(found):
    def function(x, a, w):
        hidden = x @ a
        return F.rms_norm(F.pad(hidden, (0, 16)), (COLUMNS,), w, 1e-6), hidden * hidden

    compiled(function, (ROWS, 24), (24, COLUMNS - 16), (COLUMNS,))
    assert [(value.name, value.saved, value.inputs) for value in found] == [("constant_pad_nd", {"mm"}, {})]


def test_a_library_call_and_a_sum_are_not_computed_again(found):
    def function(x, a, b):
        return torch.tanh(torch.tanh((x @ a).sum(-1, keepdim=True) * b) @ a)

    compiled(function, (ROWS, COLUMNS), (COLUMNS, COLUMNS), (COLUMNS,))
    assert not any("mm" in value.name or "sum" in value.name for value in found)
