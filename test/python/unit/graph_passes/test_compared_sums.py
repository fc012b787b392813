"""Test which sums are left to Inductor, as a backward compares what depends on them with what the forward saved."""

from __future__ import annotations

import functools

import pytest
import torch
import torch.nn.functional as F
from emitted import emitted_for
from training import graphs

import bridge
from bridge import Reason, graph_passes
from bridge.backend import bridge as backend
from bridge.inductor import graphs as fx
from bridge.support.fresh_code import fresh_entry

SHAPE = (4, 6, 8)


def gated_and_largest(x, w):
    """Compute two norms of one row, the first in halves; the maximum's gradient compares what the second computes."""
    gate, up = F.layer_norm(x, SHAPE[-1:], w).chunk(2, -1)
    return torch.sigmoid(gate) * up, F.instance_norm(x).amax(-1)


def gradients(function, *inputs):
    leaves = [one.detach().requires_grad_() for one in inputs]
    outputs = function(*leaves)
    return torch.autograd.grad(outputs, leaves, [torch.ones_like(one).cumsum(-1) for one in outputs])


def test_the_gradient_of_the_maximum_of_a_norm_is_finite():
    """Check that the gradient of a norm's maximum is finite.

    The forward added up the row in halves, and the backward in one piece: no element equalled the maximum.
    """
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(SHAPE, generator=generator), torch.randn(SHAPE[-1], generator=generator)
    torch._dynamo.reset()
    with emitted_for("sm_90", []), torch.enable_grad():
        options = {"training": True, "strict": True}
        found = gradients(torch.compile(fresh_entry(gated_and_largest), backend="bridge", options=options), *inputs)
    refusals = bridge.report().refusals
    for one, other in zip(found, gradients(gated_and_largest, *(t.double() for t in inputs)), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-4)
    assert any(r.reason is Reason.reduction_not_splittable and "Inductor's order" in r.detail for r in refusals)


@pytest.fixture
def left(monkeypatch):
    """Return a list of the sums that are left to Inductor, for each graph: what they are, by name."""
    found: list[list[str]] = []
    given = graph_passes.mark_compared_sums

    def watched(graph):
        given(graph)
        found.append(sorted({str(node.target).split(".")[1] for node in graph.nodes if fx.is_left_sum(node)}))

    monkeypatch.setattr(graph_passes, "mark_compared_sums", watched)
    return found


def maximum_of_a_norm(x):
    return F.instance_norm(x).amax(-1)


def values_of_maxima(x):
    return (x / (x.sum(-1, keepdim=True) + 9)).max(-1).values


def maximum_of_loads(x):
    return x.sin().amax(-1) + x.sum(-1)


def softmax_of_a_product(x):
    return torch.softmax(F.layer_norm(x, SHAPE[-1:]) @ torch.ones(8, 8), -1)


def test_a_backward_with_many_gradients_is_told_from_a_forward(left):
    """Check that a backward with more gradients than results is recognised.

    It was taken for a forward, and its sums were not left to Inductor.
    """

    def scaled(x, w, b, c):
        return F.instance_norm(x * w + b).amax(-1) * c

    inputs = [torch.randn(SHAPE).requires_grad_() for _ in range(3)] + [torch.randn(SHAPE[:2]).requires_grad_()]
    graphs(scaled, inputs, functools.partial(backend, options={"training": True}))
    assert left == [["var_mean"], ["var_mean"]]


@pytest.mark.parametrize(
    ("function", "sums"),
    [
        (maximum_of_a_norm, [["var_mean"], ["var_mean"]]),
        (values_of_maxima, [[], []]),  # the backward gets their places
        (maximum_of_loads, [[], []]),
        (softmax_of_a_product, [[], []]),
    ],
)
def test_what_is_left_to_inductor(function, sums, left):
    graphs(function, [torch.randn(SHAPE).requires_grad_()], functools.partial(backend, options={"training": True}))
    assert left == sums
