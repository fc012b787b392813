"""Test sums over images and pixels for each channel, whose parts are planes: in the kernel of what they add up."""

from __future__ import annotations

import functools
import itertools

import pytest
import torch
from torch._dynamo.utils import counters
from torch._inductor.choices import InductorChoices

import bridge
from bridge import inductor, offline
from bridge.backend import bridge as backend
from bridge.inductor.plane_sums import in_lines
from bridge.offline.interpret import interpreter
from bridge.reasons import Reason
from bridge.scheduling import planes


def scaled(x, g, s):
    """Compute the gradients of relu(x) * s, for its input and its scale."""
    h = torch.where(x > 0, g, 0.01 * g)
    return h * s, (h * x).sum((0, 2, 3))


def padded(x, g, s):
    """Compute products and sums of a stored value, whose images do not follow each other in memory."""
    h = torch.tanh(g) * torch.exp(-x.float())
    return h.to(x.dtype) * s, (h * x).sum((0, 2, 3)), h.sum((0, 2, 3))


def normed(x, g, s):
    """Compute the gradients of a batch norm of x, and of its scale.

    The readers of the sums read what is summed from memory: it is stored, as it is computed from five elements.
    """
    h = torch.where(x > s[:, :1], g, g * s[:, 1:2]) * s
    total, slope = h.sum((0, 2, 3), keepdim=True), (h * x).sum((0, 2, 3), keepdim=True)
    return h - (total + x * slope) / x[:, :1].numel(), slope


def in_turn(x, g, s):
    """Compute a sum that waits for another one, which is a kernel alone."""
    mean = x.sum((0, 2, 3), keepdim=True) / x[:, :1].numel()
    h = torch.tanh(x - mean) * g
    return h * s, (h * x).sum((0, 2, 3))


def tempered(x, g, s):
    """Compute the gradients of a softmax of x * s, for its input and for a temperature of each channel."""
    p = (x * s).float().softmax(-1)
    h = (p * (g - (p * g).sum(-1, keepdim=True))).to(x.dtype)
    return h * s, (h * x).sum((0, 2, 3))


def of_samples(x, g, s):
    h = torch.tanh(x) * g
    return h * s, (h * x).sum((1, 2, 3)), h.abs().amax((1, 2, 3))


def of_all(x, g, s):
    h = torch.tanh(x) * g
    return 2 * h, (h * x).sum()


def given(shape, dtype=torch.bfloat16, make=torch.empty):
    return [make(shape).to(dtype), make(shape).to(dtype), make(1, shape[1], 1, 1).to(dtype)]


def beside(function, x, g, s, y):
    """Compute a function beside two products, which need more memory than the partial sums."""
    return *function(x, g, s), (y @ y) @ y


def compiled(function, shape, dynamic=False):
    torch._dynamo.reset()
    inputs = [*given(shape), torch.empty(16384, 16384, dtype=torch.bfloat16)]
    compile_fx = functools.partial(backend, options={"strict": True})
    return offline.compile_for_gpu(functools.partial(beside, function), inputs, compile_fx=compile_fx, dynamic=dynamic)


@pytest.mark.parametrize("shape", [(32, 64, 112, 112), (16, 64, 113, 113), (8, 24, 256, 256)])
@pytest.mark.parametrize("function", [scaled, padded])
def test_channel_sums_are_in_the_kernel_of_what_they_add_up(function, shape):
    """Check that sums of channels are in the kernel of what they add up: two kernels, and three without Bridge."""
    assert compiled(function, shape).n_kernels == 2, bridge.report()
    (group,) = bridge.report().groups
    assert group.bytes_after < 0.7 * group.bytes_before


@pytest.mark.parametrize(("function", "kernels"), [(normed, 3), (in_turn, 4)])
def test_what_waits_for_sums_does_not_keep_them_from_what_they_add_up(function, kernels):
    """Check that kernels that wait for sums over the same planes do not keep the sums from the kernel that they sum."""
    assert compiled(function, (32, 64, 112, 112)).n_kernels == kernels, bridge.report()
    (group,) = bridge.report().groups
    assert group.bytes_after < 0.8 * group.bytes_before


@pytest.mark.parametrize("dynamic", [False, True])
def test_lines_of_planes_may_be_the_rows_of_a_softmax(dynamic):
    """Check that lines of planes may be the rows of a softmax.

    The rows of a piece of a plane did not fit into registers: three kernels, of which two read all rows.
    """
    assert compiled(tempered, (4, 16, 1024, 1024), dynamic).n_kernels == 2, bridge.report()
    (group,) = bridge.report().groups
    assert group.bytes_after < 0.7 * group.bytes_before
    assert all("segments" not in why for _, why in group.apart)


def test_a_plane_of_any_length_is_read_once():
    """Check that a plane of any length is read once: no lane waits for the sum, so no row stays in registers."""
    found = compiled(scaled, (8, 24, 256, 256))
    (loop,) = (kernel for kernel in found.kernels if "tl.range" in kernel.source)
    assert loop.source.count("tl.load(in_ptr0") == 1
    assert not any("persistent" in line for group in bridge.report().groups for line in group.decisions)


def test_parts_of_sums_need_room_in_memory():
    """Check that parts of sums are refused for their memory: without the products they are at the graph's peak."""
    torch._dynamo.reset()
    compile_fx = functools.partial(backend, options={"strict": True})
    assert offline.compile_for_gpu(scaled, given((32, 64, 112, 112)), compile_fx=compile_fx).n_kernels == 3
    (group,) = bridge.report().groups
    assert any(reason is Reason.not_profitable and "bytes of memory more" in why for reason, why in group.apart)


@pytest.fixture
def split_sums(monkeypatch):
    """Make Inductor split each long sum into nine parts, as for a GPU of few multiprocessors."""
    monkeypatch.setattr(inductor, "multiprocessors", lambda device: 4)
    split = staticmethod(lambda device, rows, columns, inner_reduction: 9 if rows > 100 else 1)
    monkeypatch.setattr(InductorChoices, "reduction_split_factor", split)


def interpreted(function, inputs, dynamic):
    torch._dynamo.reset()
    with interpreter(), torch.no_grad():
        options = {"strict": True, "force_fusion": True}
        return torch.compile(function, backend="bridge", dynamic=dynamic, options=options)(*inputs)


def check_against_float64(function, shape, dynamic):
    torch.manual_seed(0)
    inputs = given(shape, torch.float32, torch.randn)
    found = interpreted(function, inputs, dynamic)
    for one, other in zip(found, function(*(tensor.double() for tensor in inputs)), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5)
    assert bridge.report().kernels_after < bridge.report().kernels_before, bridge.report()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("shape", [(5, 3, 7, 11), (2, 2, 6, 10), (3, 4, 16, 16)])
@pytest.mark.parametrize("function", [scaled, padded, normed, tempered])
def test_parts_of_planes_add_up_to_what_eager_has_in_float64(split_sums, function, shape, dynamic):
    """Check that parts of planes add up to eager's sums in float64; of (2, 2, 6, 10) the planes are divided."""
    check_against_float64(function, shape, dynamic)


def test_parts_that_wait_for_other_sums_add_up_to_what_eager_has_in_float64(split_sums):
    check_against_float64(in_turn, (2, 2, 6, 10), dynamic=False)


@pytest.mark.parametrize("shape", [(2, 2, 6, 10), (3, 4, 16, 16)])
def test_parts_that_are_lines_add_up_to_what_eager_has_in_float64(split_sums, monkeypatch, shape):
    seen, sums_of = [], planes._sums_of

    def lines_of(commit):
        seen.append([in_lines(one) for one in sums_of(commit)])
        return seen[-1]

    monkeypatch.setattr(planes, "_sums_of", lines_of)
    check_against_float64(tempered, shape, dynamic=False)
    assert {one.pieces for sums in seen for one in sums} == {shape[2]}


def of_symbols(shape):
    """Return inputs for a shape, of which all sizes but the channels are symbols."""
    inputs = given(shape, torch.float32, torch.randn)
    for x, dim in itertools.product(inputs[:2], (0, 2, 3)):
        torch._dynamo.mark_dynamic(x, dim)
    return inputs


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("function", "channels"), [(of_samples, 6), (of_all, 12)])
def test_sums_of_whole_images_of_symbolic_sizes_had_a_kernel_of_their_own(split_sums, function, channels):
    """Check that sums of whole images of symbolic sizes need no kernel of their own.

    Inductor's parts end at a product of symbols, rounded up; equal pieces of an image end with its planes.
    """
    torch._dynamo.reset()
    counters.clear()
    with interpreter(), torch.no_grad():
        compiled = torch.compile(function, backend="bridge", options={"strict": True, "force_fusion": True})
        for inputs in map(of_symbols, ((2, channels, 11, 3), (3, channels, 4, 9), (10, channels, 5, 7))):
            for one, other in zip(compiled(*inputs), function(*(x.double() for x in inputs)), strict=True):
                torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5)
    assert counters["stats"]["unique_graphs"] == 1
    assert bridge.report().kernels_after == 2 < bridge.report().kernels_before, bridge.report()


@pytest.mark.parametrize("dynamic", [False, True])
def test_sums_of_whole_images_are_in_the_kernel_of_what_they_add_up(dynamic):
    assert compiled(of_samples, (8, 64, 48, 48), dynamic).n_kernels == 2, bridge.report()
