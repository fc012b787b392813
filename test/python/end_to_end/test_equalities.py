"""Elements stored in 16 bits, read in the same kernel, and asked if they equal something: as memory has them."""

from __future__ import annotations

import pytest
import torch

from bridge.offline.interpret import interpreter

BITS_16 = [torch.bfloat16, torch.float16]


def loud(x):
    """Give each row the mean and the deviation of others, after a floor under the loudest element: as of a spectrum."""
    level = torch.log10(x.clamp(min=1e-3))
    level = torch.maximum(level, level.amax() - 0.8)
    return (level - level.mean(-1, keepdim=True)) / (level.std(-1, keepdim=True) + 0.01)


def scaled(x):
    """Divide by the largest element, and take the mean of each row away."""
    level = torch.tanh(x * 3)
    level = level / level.abs().amax()
    return level - level.mean(-1, keepdim=True)


def gradient(function, x, upstream):
    leaf = x.detach().requires_grad_()
    return torch.autograd.grad(function(leaf), leaf, upstream)[0]


def error_of_gradient(function, dtype):
    """Return the error of Bridge's gradient, which is NaN where no element equals the extreme."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(6, 16, generator=generator).to(dtype)
    upstream = torch.randn(6, 16, generator=generator).to(dtype)
    torch._dynamo.reset()
    found = gradient(torch.compile(function, backend="bridge", dynamic=False), x, upstream).double()
    exact = gradient(function, x.double(), upstream.double())
    return ((found - exact).norm() / exact.norm()).item()


@pytest.mark.parametrize("dtype", BITS_16)
@pytest.mark.parametrize("function", [loud, scaled])
def test_the_gradient_of_an_extreme_finds_it_in_triton(function, dtype):
    """The backward compares each element with the extreme, and divides by how many equal it.

    Inductor's own gradient of `scaled` is NaN: one of its kernels computes the elements again, without rounding.
    """
    with interpreter():
        assert error_of_gradient(function, dtype) < 0.02


@pytest.mark.parametrize("dtype", BITS_16)
def test_the_gradient_of_an_extreme_finds_it_in_cpp(dtype):
    assert error_of_gradient(loud, dtype) < 0.02
