"""Test the integers that a graph computes of nothing."""

from __future__ import annotations

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from bridge.inductor import constants
from bridge.inductor.constants import integers

aten, prims = torch.ops.aten, torch.ops.prims


def numbers(length, start=0, step=1):
    """Return `length` integers from `start` on."""
    options = {"start": start, "step": step, "dtype": torch.int64, "device": torch.device("cpu")}
    return prims.iota.default(length, requires_grad=False, **options)


def found(function, *inputs):
    """Return the integers of what a traced function gives, and what it gave."""
    graph = make_fx(function, tracing_mode="fake")(*inputs).graph
    (result,) = next(node for node in graph.nodes if node.op == "output").args
    return integers(result), function(*inputs)


@pytest.mark.parametrize(
    "function",
    [
        lambda: numbers(5, 3, -2),
        lambda: aten.unfold.default(numbers(12), 0, 4, 2).reshape(-1),
        lambda: aten.add.Tensor(numbers(6), aten.mul.Tensor(numbers(6), 3)),
        lambda: aten.flip.default(numbers(6), [0])[1:4],
    ],
)
def test_integers_that_no_input_decides(function):
    ours, expected = found(function)
    assert ours is not None and torch.equal(ours, expected)


def test_integers_are_computed_on_the_cpu_wherever_new_tensors_are():
    graph = make_fx(lambda: numbers(5, 3, -2), tracing_mode="fake")().graph
    (result,) = next(node for node in graph.nodes if node.op == "output").args
    with torch.device("meta"):
        assert integers(result).tolist() == [3, 1, -1, -3, -5]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 1,
        lambda x: numbers(6) + x,
        lambda x: (numbers(6).to(torch.float32) * 0.3).to(torch.int64),
        lambda x: torch.sort(numbers(6))[1],
    ],
    ids=["an input", "an input added", "rounded", "not computed"],
)
def test_integers_that_are_not_known(function):
    ours, _ = found(function, torch.arange(6))
    assert ours is None


def test_more_integers_than_are_computed(monkeypatch):
    monkeypatch.setattr(constants, "MOST_INTEGERS", 5)
    ours, _ = found(lambda: numbers(6))
    assert ours is None
