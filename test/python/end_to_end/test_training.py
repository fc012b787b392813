"""Test training: gradients are eager's, and nothing is touched with `training=False`."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from functions import norm, rotary
from training import PATTERNS, count, graphs

import bridge
from bridge.backend import bridge as bridge_backend


def swiglu(x, weight):
    first, second = norm(x, weight).chunk(2, -1)
    return F.silu(first) * second


def softmax(x, weight):
    first, second = torch.softmax(x * weight, -1).chunk(2, -1)
    return first * second


def written(x, weight):
    """Overwrite a part of an intermediate whose old value the backward needs."""
    y = norm(x, weight)
    z = y.clone()
    z[:, :4] = 0
    first, second = z.chunk(2, -1)
    return first * second + y[:, :32]


def dropped(x, weight):
    return F.dropout(swiglu(x, weight), 0.5, training=True)


#: With whether C++ is fused, forward or backward.  With what the backward needs, `swiglu` has loops that do not stay
#: together: one over the rows by vectors stands between two over rows.
FUNCTIONS = [(swiglu, False), (rotary, True), (softmax, False), (written, False)]


def leaves():
    generator = torch.Generator().manual_seed(0)
    x, weight = torch.randn(6, 64, generator=generator), torch.rand(64, generator=generator)
    return x.requires_grad_(), weight.requires_grad_()


def gradients(function, dtype=torch.float32):
    x, weight = (t.detach().to(dtype).requires_grad_() for t in leaves())
    with torch.enable_grad():
        result = function(x, weight)
        loss = result.square().sum()
    loss.backward()
    return result.detach(), x.grad, weight.grad


def assert_close(ours, expected):
    for one, other in zip(ours, expected, strict=True):
        torch.testing.assert_close(one.double(), other.double(), rtol=1e-4, atol=1e-5)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("function, fused", FUNCTIONS, ids=[f.__name__ for f, _ in FUNCTIONS])
def test_gradients(function, fused, compiler):
    compiled = compiler(function, backend="bridge")
    assert_close(gradients(compiled), gradients(function, torch.float64))
    counters = torch._dynamo.utils.counters["bridge"]
    assert "refused.training_graph" not in counters
    assert (counters["groups_fused"] >= 1) == fused, bridge.report()
    assert bridge.report().graphs == 2


def test_graphs_are_inductors_with_the_option_off(compiler):
    compiled = compiler(swiglu, backend="bridge", options={"training": False})
    assert_close(gradients(compiled), gradients(swiglu, torch.float64))
    counters = torch._dynamo.utils.counters["bridge"]
    assert dict(counters) == {"refused.training_graph": 2}


def test_one_function_for_both(compiler):
    """Check that inference is fused, and training with the option off is not, whichever comes first."""
    compiled = compiler(swiglu, backend="bridge", options={"training": False})
    counters = torch._dynamo.utils.counters["bridge"]
    gradients(compiled)
    assert counters["groups_fused"] == 0
    with torch.inference_mode():
        x, weight = (t.detach() for t in leaves())
        torch.testing.assert_close(compiled(x, weight), swiglu(x, weight))
    assert counters["groups_fused"] == 1


@pytest.mark.in_turn(2)
def test_dropout_draws_the_same_in_both_directions(compiler):
    """Check that the backward uses the forward's random numbers: what is zero in the result has no gradient."""
    x, weight = leaves()
    compiled = compiler(dropped, backend="bridge")
    with torch.enable_grad():
        result = compiled(x, weight)
        # Twice what was not dropped, as if nothing else had been there.
        kept = (result != 0).double()
        expected = (swiglu(*(wide := [t.detach().double().requires_grad_() for t in (x, weight)])) * kept * 2).sum()
        loss = result.sum()
    loss.backward()
    expected.backward()
    assert 0 < kept.mean() < 1
    torch.testing.assert_close(x.grad.double(), wide[0].grad, rtol=1e-4, atol=1e-5)


def test_checkpoint_and_accumulation(compiler):
    """Check recomputation in the backward, and gradients that add up over two calls."""
    from torch.utils.checkpoint import checkpoint

    def checkpointed(x, weight):
        return checkpoint(swiglu, x, weight, use_reentrant=False)

    compiled = compiler(checkpointed, backend="bridge")
    x, weight = leaves()
    for _ in range(2):
        with torch.enable_grad():
            compiled(x, weight).square().sum().backward()
    _, once, _ = gradients(swiglu, torch.float64)
    torch.testing.assert_close(x.grad.double(), 2 * once, rtol=1e-4, atol=1e-5)


@pytest.mark.in_turn(2)
def test_dynamic_rows(compiler):
    compiled = compiler(swiglu, backend="bridge", dynamic=True)
    for rows in (6, 9):
        pairs = []
        for function, dtype in ((compiled, torch.float32), (swiglu, torch.float64)):
            x = torch.linspace(-2, 2, rows * 64).reshape(rows, 64).to(dtype).requires_grad_()
            weight = torch.linspace(0.5, 1, 64).to(dtype).requires_grad_()
            with torch.enable_grad():
                function(x, weight).square().sum().backward()
            pairs.append((x.grad, weight.grad))
        assert_close(*pairs)
    assert torch._dynamo.utils.counters["bridge"]["groups_fused"] >= 1


@pytest.mark.parametrize(
    "name", ["q, k, v: split, norms, RoPE", "MLA kv: split, norm, RoPE, cat", "AdaLN, h = x + gate * y"]
)
def test_kernels_of_both_directions(name):
    """Check that both directions of benchmarks/training.py have fewer kernels, as the report and its groups say.

    A sum that PyTorch adds up after a mix-order kernel was counted as one of Inductor's kernels.
    """
    function, make = PATTERNS[name]
    reports = []

    def trained(gm, inputs):
        compiled = bridge_backend(gm, inputs)
        reports.append(bridge.report())
        return compiled

    theirs, ours = (graphs(function, make(), backend) for backend in (torch._inductor.compile_fx.compile_fx, trained))
    counts = [[list(map(int, count(code).split(" + "))) for code in codes] for codes in (theirs, ours)]
    # With the sums that Inductor's mix-order kernels leave to PyTorch.
    (forward, backward), (forward_now, backward_now) = ([sum(pair) for pair in pairs] for pairs in counts)
    assert 1 == forward_now <= forward and backward_now < backward >= 2
    written, written_now = (sum(pair[0] for pair in pairs) for pairs in counts)
    (report,) = reports
    assert (report.kernels_before, report.kernels_after) == (written, written_now)
    groups = [(group.kernels_before, group.kernels_after) for group in report.groups]
    assert sum(before - after for before, after in groups) == written - written_now
