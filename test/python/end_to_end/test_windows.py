"""Test norms of images in planes whose results are cut into windows: one kernel, which goes over the image's lines."""

from __future__ import annotations

import functools
import re

import pytest
import torch
import torch.nn.functional as F
from torch._inductor.choices import InductorChoices

import bridge
from bridge import offline
from bridge.backend import bridge as backend
from bridge.lowering.lift import loop_order
from bridge.lowering.lift.loop_order import LoopOrder
from bridge.offline.interpret import interpreter


def two_norms(x, weights, *, window):
    """Return the image after the first norm, and windows of the second one."""
    first = F.layer_norm(x.permute(0, 2, 3, 1), weights.shape[1:], weights[0], weights[1])
    second = F.layer_norm(first, weights.shape[1:], weights[2], weights[3])
    images, height, width, channels = second.shape
    cut = second.view(images, height // window, window, width // window, window, channels)
    return first.permute(0, 3, 1, 2).contiguous(), cut.permute(0, 1, 3, 2, 4, 5).reshape(-1, channels)


def given(shape, dtype, make):
    return [make(shape).to(dtype), make(4, shape[1]).to(dtype)]


def compiled(function, inputs, **options):
    torch._dynamo.reset()
    compile_fx = functools.partial(backend, options={"strict": True, **options})
    return offline.compile_for_gpu(function, inputs, compile_fx=compile_fx)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize(("size", "window"), [(56, 7), (64, 8)])
def test_two_norms_and_windows_are_one_kernel_over_the_images_lines(dtype, size, window):
    """Check that two norms and windows are one kernel in the order of the image's lines.

    In the windows' order each program would load and store single pixels of a plane.
    """
    found = compiled(functools.partial(two_norms, window=window), given((64, 96, size, size), dtype, torch.empty))
    (kernel,) = found.kernels
    (group,) = bridge.report().groups
    assert group.bytes_after < 0.6 * group.bytes_before
    (image,) = re.findall(r"tl.load\(in_ptr0 \+ \((.*?)\),", kernel.source)
    assert image.startswith("x0 + ") and f"x0 = (xindex % {size * size})" in kernel.source


@pytest.fixture
def whole_rows(monkeypatch):
    """Keep Inductor from splitting rows, as it does for few pixels."""
    whole = staticmethod(lambda device, rows, columns, inner_reduction: 1)
    monkeypatch.setattr(InductorChoices, "reduction_split_factor", whole)


def in_windows(x, *, window):
    """Divide an image by the squares of its channels; return it and windows of it."""
    y = x / x.square().sum(1, keepdim=True)
    images, channels, height, width = y.shape
    cut = y.view(images, channels, height // window, window, width // window, window)
    return y + 1, cut.permute(0, 2, 4, 3, 5, 1).reshape(-1, channels)


@pytest.mark.parametrize(("shape", "window"), [((2, 24, 14, 14), 7), ((3, 20, 8, 12), 4)])
def test_windows_have_the_numbers_of_eager_in_float64(whole_rows, shape, window):
    torch.manual_seed(0)
    torch._dynamo.reset()
    x = torch.randn(shape)
    function = functools.partial(in_windows, window=window)
    with interpreter(), torch.no_grad():
        options = {"strict": True, "force_fusion": True}
        found = torch.compile(function, backend="bridge", dynamic=False, options=options)(x)
    for one, other in zip(found, function(x.double()), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5)
    assert bridge.report().kernels_after == 1 < bridge.report().kernels_before, bridge.report()


def backwards(sizes, accesses):
    """Return a reversed order of loops, which no code needs."""
    return LoopOrder(tuple((loop,) for loop in reversed(range(len(sizes)))), tuple(sizes))


@pytest.mark.in_turn(2)
def test_rows_in_any_order_have_the_same_numbers(monkeypatch, whole_rows):
    function, x = functools.partial(in_windows, window=4), torch.randn(3, 40, 8, 12)
    sources = []
    for order in (loop_order.best_order, backwards):
        monkeypatch.setattr(loop_order, "best_order", order)
        torch._dynamo.reset()
        options = {"strict": True, "force_fusion": True}
        with interpreter(), torch.no_grad():
            found = torch.compile(function, backend="bridge", dynamic=False, options=options)(x)
        for one, other in zip(found, function(x.double()), strict=True):
            torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5)
        (kernel,) = compiled(function, [x], force_fusion=True).kernels
        sources.append(kernel.source)
    assert sources[0] != sources[1]
