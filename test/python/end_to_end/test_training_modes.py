"""Test training as programs do it.

Autocast, graphs that are kept, compiled autograd, an optimiser's step, several ranks.
"""

from __future__ import annotations

import processes
import pytest
import torch
import torch.nn.functional as F
from functions import norm

import bridge

TRAINING = {"training": True}


def layer(x, weight):
    first, second = norm(x @ weight).chunk(2, -1)
    return F.silu(first) * second


def leaves(dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    sizes = (6, 32), (32, 64)
    return [torch.randn(size, generator=generator).to(dtype).requires_grad_() for size in sizes]


def expected_gradients():
    x, weight = leaves(torch.float64)
    with torch.enable_grad():
        layer(x, weight).square().sum().backward()
    return x.grad, weight.grad


def assert_gradients(inputs, factor=1.0, error=1e-4):
    for one, other in zip(inputs, expected_gradients(), strict=True):
        torch.testing.assert_close(one.grad.double(), factor * other, rtol=error, atol=error * other.abs().max().item())


def assert_both_directions_are_seen():
    assert bridge.report().graphs == 2
    assert "refused.training_graph" not in torch._dynamo.utils.counters["bridge"]


@pytest.mark.in_turn(2)
def test_autocast(compiler):
    compiled, inputs = compiler(layer, backend="bridge", options=TRAINING), leaves()
    with torch.enable_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        compiled(*inputs).square().sum().backward()
    assert_gradients(inputs, error=3e-2)
    assert_both_directions_are_seen()


def test_a_graph_that_is_kept(compiler):
    """Check a backward graph that is kept and run twice: its buffers are not donated."""
    compiled, inputs = compiler(layer, backend="bridge", options=TRAINING), leaves()
    with torch._functorch.config.patch(donated_buffer=False), torch.enable_grad():
        loss = compiled(*inputs).square().sum()
        loss.backward(retain_graph=True)
        loss.backward()
    assert_gradients(inputs, factor=2.0)


def test_a_gradient_of_a_gradient_is_refused_as_by_inductor(compiler):
    compiled, inputs = compiler(layer, backend="bridge", options=TRAINING), leaves()
    with torch._functorch.config.patch(donated_buffer=False), torch.enable_grad():
        (gradient,) = torch.autograd.grad(compiled(*inputs).square().sum(), inputs[:1], create_graph=True)
        with pytest.raises(RuntimeError, match="double backward"):
            gradient.sum().backward()


@pytest.mark.in_turn(2)
def test_compiled_autograd(compiler):
    def step(x, weight):
        loss = layer(x, weight).square().sum()
        loss.backward()
        return loss

    compiled, inputs = compiler(step, backend="bridge", options=TRAINING), leaves()
    with torch._dynamo.config.patch(compiled_autograd=True), torch.enable_grad():
        compiled(*inputs)
    assert_gradients(inputs)


def test_the_step_of_an_optimiser(compiler):
    """Check that three steps overwrite parameters and both moments as eager does in float64."""
    ours, exact = (
        [t.detach().to(dtype).requires_grad_() for t in leaves()] for dtype in (torch.float32, torch.float64)
    )
    optimisers = [torch.optim.AdamW(parameters, lr=0.1, foreach=True) for parameters in (ours, exact)]
    steps = compiler(optimisers[0].step, backend="bridge"), optimisers[1].step
    for number in range(3):
        for parameters, step in zip((ours, exact), steps, strict=True):
            for parameter in parameters:
                parameter.grad = (parameter.detach() * (number + 1)).sin()
            step()
    for one, other in zip(ours, exact, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-5)


@pytest.mark.in_turn(3)
@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "wrapped", ["torch.nn.parallel.DistributedDataParallel(model)", "torch.distributed.fsdp.fully_shard(model)"]
)
def test_two_ranks(wrapped):
    """Check that each rank has the mean of both ranks' gradients, which float64 has without communication."""
    code = f"""
        import copy
        import torch._inductor.config
        import torch.distributed.fsdp
        from torch import nn
        from functions import norm
        import bridge
        from bridge.backend import bridge as backend

        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.up = nn.Linear(32, 64, bias=False)

            def forward(self, x):
                first, second = norm(self.up(x)).chunk(2, -1)
                return torch.nn.functional.silu(first) * second

        torch._inductor.config.force_disable_caches = True
        torch.manual_seed(0)
        model = Layer()
        exact = copy.deepcopy(model).double()
        batches = torch.randn(2, 6, 32)
        wrapped = {wrapped}
        compiled = torch.compile(wrapped, backend=lambda g, i: backend(g, i, options={{"training": True}}))
        compiled(batches[dist.get_rank()]).square().sum().backward()
        for batch in batches.double():
            (exact(batch).square().sum() / 2).backward()
        gradient = wrapped.module.up.weight.grad if hasattr(wrapped, "module") else wrapped.up.weight.grad.full_tensor()
        torch.testing.assert_close(gradient.double(), exact.up.weight.grad, rtol=1e-4, atol=1e-5)
        assert bridge.report().graphs >= 1, bridge.report()
        print("equal")
    """
    assert processes.run_ranks(code) == ["equal\n", "equal\n"]
