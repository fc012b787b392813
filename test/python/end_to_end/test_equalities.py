"""Test elements stored in 16 bits, read in the same kernel, and asked if they equal something: as memory has them."""

from __future__ import annotations

import pytest
import torch
from emitted import run_emitted

import bridge
from bridge.offline.interpret import interpreter

BITS_16 = [torch.bfloat16, torch.float16]


def loud(x):
    """Normalise rows whose elements are at least the largest of all less 0.8, as in a spectrum."""
    level = torch.log10(x.clamp(min=1e-3))
    level = torch.maximum(level, level.amax() - 0.8)
    return (level - level.mean(-1, keepdim=True)) / (level.std(-1, keepdim=True) + 0.01)


def scaled(x):
    """Divide by the largest element, and subtract the mean of each row."""
    level = torch.tanh(x * 3)
    level = level / level.abs().amax()
    return level - level.mean(-1, keepdim=True)


def shares(x):
    """Return the largest part of a softmax of four numbers, and the mean of their places, weighted by the parts.

    All four are of one iteration in C++, where the backward computes the parts again.
    """
    parts = x.view(x.shape[0], -1, 4).softmax(-1)
    places = torch.arange(4, device=x.device, dtype=x.dtype)
    return parts.amax(-1), (parts * places).sum(-1)


def gradient(function, x, dtype):
    """Return the gradient of all results, each of which has a gradient of `dtype`."""
    generator = torch.Generator().manual_seed(1)
    leaf = x.detach().requires_grad_()
    results = function(leaf)
    results = results if isinstance(results, tuple) else (results,)
    upstream = [torch.randn(r.shape, generator=generator).to(dtype).to(r.dtype) for r in results]
    return torch.autograd.grad(results, leaf, upstream)[0]


def error_of_gradient(function, dtype):
    """Return the error of Bridge's gradient, which is NaN where no element equals the extreme."""
    x = torch.rand(6, 16, generator=torch.Generator().manual_seed(0)).to(dtype)
    torch._dynamo.reset()
    found = gradient(torch.compile(function, backend="bridge", dynamic=False), x, dtype).double()
    exact = gradient(function, x.double(), dtype)
    return ((found - exact).norm() / exact.norm()).item()


@pytest.mark.parametrize("dtype", BITS_16)
@pytest.mark.parametrize("function", [loud, scaled])
def test_the_gradient_of_an_extreme_finds_it_in_triton(function, dtype):
    """Check that the backward finds the elements that equal an extreme, and divides by their number.

    Inductor's own gradient of `scaled` is NaN: one of its kernels computes the elements again, without rounding.
    """
    with interpreter():
        assert error_of_gradient(function, dtype) < 0.02


@pytest.mark.parametrize("dtype", BITS_16)
def test_the_gradient_of_an_extreme_finds_it_in_cpp(dtype):
    assert error_of_gradient(loud, dtype) < 0.02


@pytest.mark.parametrize("dtype", BITS_16)
def test_what_cpp_rounds_and_extends_again_equals_what_is_in_memory(dtype):
    """Check that C++ rounds parts that the backward computes again and compares with memory.

    Inductor would leave out a rounding that is undone at once.
    """
    assert error_of_gradient(shares, dtype) < 0.02


def firsts(x, kept):
    """Return the first number of each row that is kept, and the largest of them."""
    first = (kept.cumsum(-1) == 1) & kept
    return (x * first).sum(-1), x.masked_fill(~kept, -9.0).amax(-1)


@pytest.mark.parametrize("dtype", BITS_16)
def test_the_result_of_a_reduction_is_compared_as_cpp_has_stored_it(dtype):
    """Check that C++ compares a reduction's result as stored: it is rounded after the loop, not inside of it."""
    torch._dynamo.reset()
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 32, generator=generator).to(dtype)
    kept = torch.rand(2, 32, generator=generator) > 0.3
    strict = {"strict": True, "training": True}
    compiled = torch.compile(firsts, backend="bridge", dynamic=False, options=strict)
    found = gradient(lambda leaf: compiled(leaf, kept), x, dtype).double()
    exact = gradient(lambda leaf: firsts(leaf, kept), x.double(), dtype)
    assert (found - exact).norm() < 0.02 * exact.norm()
    assert bridge.report().kernels_after < bridge.report().kernels_before


def weighted(x):
    """Weight rows by a softmax of their sums."""
    return (x * torch.softmax(x.sum(-1, keepdim=True).float(), 1).to(x.dtype)).sum(1)


def log_of_sums(x):
    """Give the logarithm of the sum of the exponentials of sums: the backward reads the sums, and this."""
    return torch.logsumexp(x.sum(-1).float(), -1)


def errors(function, dtype, run):
    """Return the errors of Bridge and of Inductor; run: of (function, input)."""
    x = torch.randn(2, 16, 128, generator=torch.Generator().manual_seed(0)).to(dtype)
    exact = run(function, x.double())
    found = []
    for backend in ("bridge", "inductor"):
        torch._dynamo.reset()
        result = run(torch.compile(function, backend=backend, dynamic=False), x)
        found.append(((result.double() - exact).norm() / exact.norm()).item())
    return found


@pytest.mark.parametrize("dtype", BITS_16)
@pytest.mark.parametrize("run", [lambda function, x: function(x), lambda function, x: gradient(function, x, x.dtype)])
@pytest.mark.parametrize("function", [weighted, log_of_sums])
def test_elements_are_those_of_which_another_kernel_has_the_largest(function, run, dtype):
    """The largest of sums was of exact ones, and subtracted from what memory has of them: eight times the error."""
    with interpreter():
        ours, others = errors(function, dtype, run)
    assert ours < 1.05 * others
    assert bridge.report().kernels_after <= bridge.report().kernels_before


def small_products(x, bias):
    """Give a softmax of products of six rows: Inductor has no loop for six numbers, so each lane computes all six."""
    return torch.softmax((x.unsqueeze(0) * x.unsqueeze(1)).sum(-1) + bias, -1)


def largest_products(x, bias):
    """Compare products with the largest of six: one kernel reads both, and the program's rounding keeps all others."""
    products = (x.unsqueeze(0) * x.unsqueeze(1)).sum(-1)
    shares = torch.exp(products - products.amax(-1, keepdim=True))
    return shares * (bias.float() * 1.7).to(torch.float8_e4m3fn).to(torch.float32).to(torch.float64)


@pytest.mark.parametrize("function", [small_products, largest_products])
@pytest.mark.parametrize("dtype", BITS_16)
def test_an_element_is_as_lanes_compute_it_again(function, dtype):
    """Check that a lane's own element is rounded where lanes round those that they compute again.

    It was subtracted exact from the maximum of rounded ones: four times Inductor's error.
    """
    generator = torch.Generator().manual_seed(0)
    inputs = [(torch.randn(6, 6, generator=generator) * 2).to(dtype) for _ in range(2)]
    exact = function(*[one.double() for one in inputs])
    ours, theirs = (run_emitted(function, inputs, backend)[0] for backend in ("bridge", "inductor"))
    assert (ours - exact).norm() < 1.05 * (theirs - exact).norm()
    assert bridge.report().kernels_after == 1
