"""Test which inputs of a backward are told to be held by the user's code."""

from __future__ import annotations

import functools

import pytest
import torch
from training import graphs

from bridge.backend import bridge as backend
from bridge.inductor import held_inputs, memory

SHAPE = (8, 16)


@pytest.fixture
def held(monkeypatch):
    """Return a list of the names that estimates of memory get, the last time for each graph."""
    found: list[frozenset[str]] = []

    def noted():
        found.append(held_inputs.held_inputs())
        return found[-1]

    monkeypatch.setattr(memory, "held_inputs", noted)
    return found


def returned(x, w):
    """Return what the backward of the product needs."""
    kept = (x * w).sin()
    return kept, kept @ w.t()


def part_returned(x, w):
    """Return a part of what the backward of the product needs."""
    kept = (x * w).sin()
    return kept[:4], kept @ w.t()


def not_returned(x, w):
    return (x * w).sin() @ w.t()


@pytest.mark.parametrize(
    ("function", "sines"),
    [(returned, ["sin"]), (part_returned, ["sin"]), (not_returned, [])],
    ids=["returned", "a part", "not returned"],
)
def test_what_is_returned_and_saved_is_held(function, sines, held):
    compiled = functools.partial(backend, options={"training": True})
    graphs(function, [torch.randn(SHAPE).requires_grad_() for _ in range(2)], compiled)
    assert sorted(name for name in held[-1] if name.startswith("sin")) == sines


def test_nothing_is_held_outside_of_a_compilation():
    assert held_inputs.held_inputs() == frozenset()
