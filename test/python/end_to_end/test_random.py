"""Test random numbers of a seed: fused like loads, and Inductor's own for the same `torch.manual_seed`, bit for bit."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
import validate
from functions import norm
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.support.fresh_code import fresh_entry

KEPT = 0.9


def drop(x):
    return F.dropout(x, 1 - KEPT, training=True)


def gated(x):
    first, second = x.chunk(2, -1)
    return F.silu(first) * second


def residual(x, y):
    return F.layer_norm(x + drop(y), x.shape[-1:])


def dropped_then_gated(x):
    return gated(norm(drop(x)))


def noise_between_reductions(x):
    h = norm(x)
    return gated(norm(h + torch.rand_like(h)))


def normal_noise(x):
    h = norm(x)
    return gated(norm(h + torch.randn_like(h)))


def two_of_one_buffer(x, y):
    return gated(F.layer_norm(drop(x) + drop(y), x.shape[-1:]))


def mask_is_returned(x):
    mask = torch.rand_like(x) > 0.5
    return gated(norm(x * mask)), mask


def dropped_halves(x):
    first, second = norm(x).chunk(2, -1)
    return drop(first) * second


def integers(x):
    first, second = norm(x).chunk(2, -1)
    return first * second + torch.randint(-3, 1 << 33, first.shape, device=first.device) % 7


def turned_halves(x):
    y = norm(drop(x))
    first, second = y.chunk(2, -1)
    return y * 0.5 + torch.cat([-second, first], -1)


def noise_for_each_row(x):
    return gated(norm(x * torch.rand(len(x), 1, device=x.device)))


def transposed_noise(x):
    return gated(norm(x + torch.rand(x.shape[1], x.shape[0], device=x.device).t()))


#: With the kernels of Inductor and of Bridge.
FUNCTIONS = [
    (residual, 1, 1),
    (dropped_then_gated, 2, 1),
    (noise_between_reductions, 2, 1),
    (normal_noise, 2, 1),
    (two_of_one_buffer, 2, 1),
    (mask_is_returned, 2, 1),
    (dropped_halves, 2, 1),
    (integers, 2, 1),
    (turned_halves, 2, 1),
    (noise_for_each_row, 2, 1),
    (transposed_noise, 4, 4),  # of its rows each element is far from the next in memory
]
every_function = pytest.mark.parametrize("function", [f for f, *_ in FUNCTIONS], ids=lambda f: f.__name__)


def inputs(function, rows=6, columns=64, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    count = function.__code__.co_argcount
    return [torch.randn(rows, columns, generator=generator).to(dtype) for _ in range(count)]


class Drawn(TorchFunctionMode):
    """Run eager code with given random numbers instead of its own; without any, record which are asked for."""

    def __init__(self, numbers=None):
        super().__init__()
        self.asked, self.numbers = [], iter(numbers or [])

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kind, shape = func.__name__, tuple(args[0].shape) if args and isinstance(args[0], torch.Tensor) else args
        if kind not in ("dropout", "rand_like", "randn_like", "rand", "randint"):
            return func(*args, **(kwargs or {}))
        self.asked.append((kind, shape))
        number = next(self.numbers, torch.ones(shape[2] if kind == "randint" else shape))
        if kind != "dropout":
            return number if kind == "randint" else number.double()
        return args[0] * (number > 1 - KEPT) / KEPT


def drawn(function, arguments):
    """Return the numbers that Inductor draws for a function; they depend only on their places, not on the rest."""
    with Drawn() as calls:
        function(*(t.double() for t in arguments))

    def draws():
        return [
            torch.randint(*shape) if kind == "randint" else (torch.randn if kind[:5] == "randn" else torch.rand)(shape)
            for kind, shape in calls.asked
        ]

    torch.manual_seed(3)
    return torch.compile(fresh_entry(draws), dynamic=False)()


def tensors(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def check(function, arguments, backend=bridge_backend, dynamic=False):
    """Compare with eager in float64 that uses Inductor's numbers: one other number would show."""
    torch._dynamo.reset()
    numbers = drawn(function, arguments)
    torch._dynamo.reset()
    torch.manual_seed(3)
    with torch.no_grad():
        ours = tensors(torch.compile(fresh_entry(function), backend=backend, dynamic=dynamic)(*arguments))
    with Drawn(numbers):
        expected = tensors(function(*(t.double() for t in arguments)))
    for one, other in zip(ours, expected, strict=True):
        torch.testing.assert_close(one.double(), other.double(), rtol=1e-4, atol=1e-5)
        assert torch.equal(one == 0, other == 0)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("function", "inductors", "expected"), FUNCTIONS, ids=[f.__name__ for f, *_ in FUNCTIONS])
def test_kernels(function, inductors, expected):
    counts = [
        offline.compile_for_gpu(function, inputs(function, 64, 512), compile_fx=b).n_kernels
        for b in (None, bridge_backend)
    ]
    assert counts == [inductors, expected], bridge.report()


@pytest.mark.one_in(4)
@every_function
def test_numbers_are_inductors_on_the_cpu(function):
    check(function, inputs(function))


@pytest.mark.one_in(2)
@every_function
def test_numbers_are_inductors_in_triton(function):
    with offline.interpreter():
        check(function, inputs(function))
    assert function is residual or bridge.report().fused


@pytest.mark.one_in(3)
@every_function
def test_the_passes_change_no_number(function):
    """Check that the IR executes the same as translated and as transformed, and that isl proves the transformation."""
    with bridge.config.patch(recheck=True, strict=True):
        found = validate.record(function, inputs(function), dynamic=False)
    assert found.groups or function is residual  # which is one kernel of Inductor's
    assert validate.problems(found) == []


def weighted(result):
    """Return a loss whose gradients differ from element to element."""
    return sum((t * t.detach().cos()).sum() for t in tensors(result) if t.is_floating_point())


def check_training(function):
    """Check that gradients are those of float64 with the forward's numbers, so the backward has drawn the same."""
    arguments = inputs(function)
    torch._dynamo.reset()
    numbers = drawn(function, arguments)
    torch._dynamo.reset()
    torch.manual_seed(3)
    leaves = [[t.to(dtype, copy=True).requires_grad_() for t in arguments] for dtype in (torch.float32, torch.float64)]
    compiled = torch.compile(fresh_entry(function), backend="bridge", options={"training": True}, dynamic=False)
    with torch.enable_grad():
        weighted(compiled(*(t.clone() for t in leaves[0]))).backward()
        with Drawn(numbers):
            result = function(*leaves[1])
        weighted(result).backward()
    for one, other in zip(*leaves, strict=True):
        torch.testing.assert_close(one.grad.double(), other.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.one_in(3)
@every_function
def test_the_backward_has_the_forwards_numbers(function):
    with offline.interpreter():
        check_training(function)
    report = bridge.report()
    assert report.graphs == 2
    assert report.kernels_after + len(report.fused) <= report.kernels_before


def test_dynamic_shapes():
    """Check random numbers in dynamic shapes: an element's offset is a size times a variable, which is not affine."""
    with offline.interpreter():
        check(dropped_then_gated, inputs(dropped_then_gated), dynamic=True)
    assert bridge.report().fused


def test_kernels_of_one_launch_have_places_of_their_own_in_the_seeds():
    """Check that two kernels with a seed each, in one launch, take each its own seed."""

    def queries_and_keys(x, y):
        return dropped_then_gated(x), dropped_then_gated(y)

    with offline.interpreter():
        check(queries_and_keys, inputs(queries_and_keys))
    counts = [
        offline.compile_for_gpu(queries_and_keys, inputs(queries_and_keys), compile_fx=b).n_kernels
        for b in (None, bridge_backend)
    ]
    assert counts == [4, 1], bridge.report()


def test_a_checkpoint_draws_its_mask_again():
    """Check that a checkpoint draws its mask again: zeros have no gradient, and other elements that of eager."""

    def checkpointed(x):
        return checkpoint(lambda x: drop(gated(norm(x))), x, use_reentrant=False)

    torch._dynamo.reset()
    x = inputs(checkpointed)[0].requires_grad_()
    wide = x.detach().double().requires_grad_()
    with offline.interpreter(), torch.enable_grad():
        result = torch.compile(fresh_entry(checkpointed), backend="bridge", options={"training": True})(x)
        result.sum().backward()
        kept = (result != 0).double()
        (gated(norm(wide)) * kept / KEPT).sum().backward()
    assert 0 < kept.mean() < 1
    torch.testing.assert_close(x.grad.double(), wide.grad, rtol=1e-4, atol=1e-5)
