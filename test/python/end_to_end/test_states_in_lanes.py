"""Test variances, softmaxes and arguments of extrema over a few elements of each lane, then the row: one kernel."""

from __future__ import annotations

import math

import pytest
import torch
from emitted import run_emitted
from programs import wide
from rechecked import check
from torch.nn import functional

import bridge
from bridge import offline
from bridge.affine import dtypes
from bridge.backend import bridge as bridge_backend


def normed_variance(x, _):
    """Divide variances over an ensemble by their row's root mean square."""
    y = wide(x).var(1)
    return y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)


def spread(x, _):
    """Average the standard deviations over a minibatch."""
    return wide(x).std(1, correction=0).mean(-1)


def pooled(x, _):
    """Compute mean and variance over frames, then a norm."""
    variance, mean = torch.var_mean(wide(x), 1, correction=0)
    return functional.layer_norm(mean * torch.rsqrt(variance + 1e-3), x.shape[-1:])


def mixed(x, row):
    """Compute a mean weighted by a softmax over components, then the row's squared error."""
    return ((wide(x).softmax(1) * wide(x)).sum(1) - wide(row)).pow(2).sum(-1)


def chosen(x, row):
    """Return the expert of each channel, and the row's sum over the channels of one expert."""
    choice = x.argmax(1)
    return choice, torch.where(choice == 2, wide(row), 0).sum(-1)


def lowest(x, row):
    return (x.argmin(1) * wide(row)).sum(-1)


def mixture(x, row):
    """Compute the likelihood of a row under a mixture: terms of components, a logsumexp of them, and the sum."""
    z = wide(row)[:, None] - wide(x)
    terms = functional.log_softmax(wide(x), 1) - torch.log1p(z * z)
    return torch.logsumexp(terms, 1).sum(-1)


def weights_and_norm(x, row):
    """Weigh by a softmax, which is stored too, and normalise the row."""
    weights = torch.tanh(wide(x)).softmax(1)
    y = (weights * wide(row)[:, None]).sum(1)
    return weights, y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)


FUNCTIONS = [mixture, weights_and_norm, normed_variance, spread, pooled, mixed, chosen, lowest]


def inputs(shape, dtype):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(size, generator=generator).to(dtype) for size in (shape, (shape[0], shape[2]))]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(6, 9, 32), (5, 16, 40)], ids=str)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_states_in_lanes_then_the_row_are_one_kernel(function, shape, dtype):
    """Check that states in lanes and then the row are one kernel; rows of 40 elements have idle lanes, too."""
    check(function, inputs(shape, dtype), kernels=1)


def edges(components=8, width=32):
    """Return rows with one NaN in a lane or several, ties, infinities of both signs, or one infinity alone."""
    x = torch.arange(7 * components * width, dtype=torch.float32).reshape(7, components, width).sin()
    x[1, 3] = math.nan
    x[2, 5], x[2, 2] = math.nan, math.nan
    x[3, 1], x[3, 6], x[3, 4] = 2.0, 2.0, -2.0
    x[3, 7] = -2.0
    x[4, 6], x[4, 2] = math.inf, -math.inf
    x[5] = -math.inf
    x[6] = math.inf
    return x


def argmax_and_row(x):
    choice = x.argmax(1)
    return choice, choice.sum(-1)


def argmin_and_row(x):
    choice = x.argmin(1)
    return choice, choice.sum(-1)


def softmax_and_row(x):
    mean = (x.softmax(1) * torch.arange(8.0)[:, None]).sum(1)
    return mean, mean.amax(-1)


def variance_and_row(x):
    variance = x.var(1)
    return variance, variance.amax(-1)


@pytest.mark.parametrize("backend", ["eager code", "C++"])
@pytest.mark.parametrize("function", [argmax_and_row, argmin_and_row, softmax_and_row, variance_and_row])
def test_edges_are_those_of_eager(function, backend):
    """Check edges against eager: NaN is the largest and the least, the first of equals wins, softmax of -inf is NaN."""
    x = edges()
    if backend == "C++":
        found = torch.compile(function, backend=bridge_backend, dynamic=False)(x)
    else:
        found, (code,) = run_emitted(function, [x], bridge_backend)
        assert code.count("@triton.jit") == 1
    for got, want in zip(found, function(x), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8, torch.float64], ids=str)
def test_arguments_of_extrema_of_other_numbers(dtype):
    x = (torch.arange(5 * 9 * 32).reshape(5, 9, 32) * 37 % 11).to(dtype)
    found, (code,) = run_emitted(argmax_and_row, [x], bridge_backend)
    for got, want in zip(found, argmax_and_row(x), strict=True):
        torch.testing.assert_close(got, want)
    assert code.count("@triton.jit") == 1 + (dtype in dtypes.UNSIGNED)  # whose loops carry no state


def error(found, exact):
    return (found.double() - exact).pow(2).mean().sqrt().item()


@pytest.mark.in_turn(4)
def test_rounding_errors_are_not_above_those_without_bridge():
    """Check rounding errors for elements far from zero, where a sum of squares would cancel."""
    x, row = inputs((16, 16, 64), torch.float32)
    x += 1000
    ratios = []
    for function in (normed_variance, spread, pooled, mixed):
        exact = function(x.double(), row.double())
        ours, theirs = (run_emitted(function, [x, row], backend)[0] for backend in (bridge_backend, "inductor"))
        ratios.append(error(ours, exact) / error(theirs, exact))
    assert math.prod(ratios) ** (1 / len(ratios)) <= 1.05


def counts(function, *sizes):
    """Return the numbers of kernels without and with Bridge."""
    given = [torch.empty(size) for size in sizes]
    theirs = offline.compile_for_gpu(function, given)
    return theirs.n_kernels, offline.compile_for_gpu(function, given, compile_fx=bridge_backend).n_kernels


def test_so_many_states_stay_in_a_loop():
    """Check that 33 elements stay in a loop: all that a lane loads is in registers at the same time."""
    assert counts(normed_variance, (4096, 32, 64), (4096, 64)) == (2, 1)
    (group,) = bridge.report().groups
    assert group.bytes_after < group.bytes_before
    assert counts(normed_variance, (4096, 33, 64), (4096, 64)) == (2, 2)


def spilled(function, *sizes):
    """Return how many words the threads of the one kernel spill."""
    (kernel,) = offline.compile_for_gpu(function, [torch.empty(s) for s in sizes], compile_fx=bridge_backend).kernels
    return [cubin.spills for cubin in offline.compile_kernel(kernel)]


@pytest.mark.parametrize("function", [mixture, weights_and_norm, mixed, pooled], ids=lambda f: f.__name__)
def test_no_thread_of_a_long_row_spills(function):
    """Check that threads of a long row do not spill; as one warp with all lanes they spilled 322 words."""
    assert spilled(function, (2048, 8, 1024), (2048, 1024)) == [0]


def test_a_row_of_so_much_stays_in_its_loops():
    """Check that a row that is more than a block keeps stays in its loops."""
    assert counts(normed_variance, (512, 16, 4096), (512, 4096)) == (2, 2)
