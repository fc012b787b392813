"""Test what one kernel takes that computes values again."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.lowering.lift import times
from bridge.lowering.lift.programs import Executed
from bridge.lowering.triton.profitability import (
    CACHE_BYTES_A_BYTE,
    CACHED_BYTES,
    ELEMENTS_OF_THREAD,
    LAUNCH_BYTES,
)
from bridge.reasons import Reason


@pytest.fixture
def gpu(monkeypatch):
    """Make kernels say themselves what they read, make and execute."""
    monkeypatch.setattr(times.inductor, "bytes_touched", lambda kernel: kernel.touched)
    monkeypatch.setattr(times.inductor, "buffers_made", lambda kernel: set(kernel.made))
    monkeypatch.setattr(times.inductor, "buffers_read", lambda kernel: set(kernel.touched) - set(kernel.made))
    monkeypatch.setattr(times.inductor, "reduces", lambda kernel: kernel.reduces)
    monkeypatch.setattr(times.inductor, "device_of", lambda kernel: kernel.device)
    monkeypatch.setattr(times.inductor, "generates_triton", lambda device: device == "cuda")
    monkeypatch.setattr(times.inductor, "bytes_asked_for", lambda kernel: kernel.asked)
    monkeypatch.setattr(times.inductor, "bytes_of_element", lambda kernel: kernel.of_element)
    monkeypatch.setattr(times, "executed", lambda kernel: Executed(kernel.executed, 1))


def kernel_of(touched, made, executed=0.0, device="cuda", reduces=False, asked=0, of_element=4):
    return SimpleNamespace(
        touched=touched,
        made=made,
        executed=executed,
        device=device,
        reduces=reduces,
        asked=asked,
        of_element=of_element,
    )


@pytest.mark.parametrize("size", [1000, int(CACHED_BYTES) + 1])
def test_what_was_just_written_is_read_in_half_of_the_time(gpu, size):
    writer, reader = kernel_of({"x": size, "y": size}, "y"), kernel_of({"y": size, "z": size}, "z")
    saved = size // 2 if size <= CACHED_BYTES else 0
    assert times.times_apart([writer, reader], [Executed(0, 1)] * 2) == 4 * size - saved
    assert times.times_apart([writer, reader], [Executed(9 * size, 1), Executed(0, 1)]) == 11 * size - saved


@pytest.mark.parametrize(("device", "launch"), [("cuda", LAUNCH_BYTES), ("cpu", 0)])
def test_instructions_longer_than_kernels_apart(gpu, device, launch):
    apart, longest = 50 << 20, (50 << 20) + launch
    touched = {"x": 30 << 20}
    assert times.computed_again(kernel_of(touched, "", longest, device), 2, apart) is None
    found = times.computed_again(kernel_of(touched, "", longest + 1, device), 2, apart)
    assert found is not None and found[1] == apart + launch < found[0]


@pytest.mark.parametrize("share", [0.9, 1.1])
def test_loads_from_the_nearest_cache_take_time_too(gpu, share):
    apart = 50 << 20
    asked = share * (apart + LAUNCH_BYTES) * CACHE_BYTES_A_BYTE
    kernel = kernel_of({"x": 30 << 20}, "", 1 << 20, asked=asked)
    assert (times.computed_again(kernel, 2, apart) is not None) == (share > 1)


@pytest.mark.parametrize("over", [0.9, 1.0, 1.5])
def test_threads_with_much_in_registers_take_longer_for_their_instructions(gpu, over):
    """Check that threads with much in registers take longer for their instructions.

    A pooling over a sum of four tensors took 126 us on an H100, its instructions 79, and two kernels 98.
    """
    apart, of_element = 50 << 20, over * times.LOADED_REGISTERS / times.REGISTERS_A_BYTE
    kernel = kernel_of({"x": 30 << 20}, "", 0.9 * (apart + LAUNCH_BYTES), of_element=of_element)
    assert (times.computed_again(kernel, 2, apart) is not None) == (over > 1)


def test_instructions_behind_memory_do_not_count(gpu):
    """Check that a kernel whose memory takes longer than its instructions is not judged here, but by its bytes."""
    assert times.computed_again(kernel_of({"x": 90 << 20}, "", 80 << 20), 2, 0) is None


def test_a_kernel_that_reduces_is_not_judged(gpu):
    """Check that a kernel that reduces is not judged.

    RMSNorm with fp8 blocks has a row in three shapes, for which the same values were counted anew.
    """
    kernel = kernel_of({"x": 1 << 20}, "", 80 << 20, reduces=True)
    assert times.computed_again(kernel, 2, 0) is None


def scaled_and_pooled(x, scale, shift):
    """Compute a group norm's last step, with a scale and shift for each image and channel, and subtract a pool."""
    y = (x * scale[:, :, None, None] + shift[:, :, None, None]).to(x.dtype)
    return F.avg_pool2d(y, 3, 1, 1, count_include_pad=False) - y


def test_what_all_places_of_a_window_share_is_loaded_once():
    """Check that what all places of a window share is loaded once.

    Its scale is in bounds wherever the window is: a load of it for each place took 36 us, not 16.
    """
    x = torch.randn(64, 320, 14, 14, dtype=torch.bfloat16).to(memory_format=torch.channels_last)
    of_channels = torch.randn(64, 320), torch.randn(64, 320)
    (kernel,) = offline.compile_for_gpu(scaled_and_pooled, (x, *of_channels), compile_fx=bridge_backend).kernels
    assert [kernel.source.count(f"tl.load(in_ptr{n} ") for n in range(3)] == [9, 1, 1]


def sum_pooled(scale, *parts):
    x = sum(parts[1:], parts[0])
    y = x * scale[:, None, None, None]
    return x + F.avg_pool2d(y, 3, 1, 1, count_include_pad=False) - y


@pytest.mark.parametrize(("parts", "kernels"), [(2, 1), (5, 2)])
def test_a_window_of_sums_of_many_tensors_is_not_loaded_for_each_of_its_places(parts, kernels):
    """Check that a window of sums of many tensors is not loaded for each of its places.

    Threads that have so much in registers are few: of four tensors one kernel took 126 us on an H100, two 98.
    """
    x = torch.randn(64, 256, 28, 28, dtype=torch.bfloat16).to(memory_format=torch.channels_last)
    inputs = torch.randn(64, dtype=torch.bfloat16), *(torch.clone(x) for _ in range(parts))
    assert len(offline.compile_for_gpu(sum_pooled, inputs, compile_fx=bridge_backend).launches) == kernels


@pytest.mark.parametrize(("rows", "wide"), [(32, True), (2, False)])
def test_a_thread_has_elements_side_by_side_where_instructions_count(rows, wide):
    """Check that a thread has adjacent elements where instructions count, and not if there are too few blocks.

    With two of them the kernel took 55 us on an H100, with eight 36.
    """
    x = torch.randn(rows, 256, 28, 28, dtype=torch.bfloat16).to(memory_format=torch.channels_last)
    of_channels = torch.randn(rows, 256), torch.randn(rows, 256)
    kernels = offline.compile_for_gpu(scaled_and_pooled, (x, *of_channels), compile_fx=bridge_backend).kernels
    assert len(kernels) == 1 and (f"min_elem_per_thread={ELEMENTS_OF_THREAD}" in kernels[0].source) == wide


def activated_halves(expert, bias, states):
    """Compute the activation of GPT-OSS's experts, whose halves are every other element, and return the experts too."""
    expert = expert.clamp(max=31)
    gate, linear = (states + bias[expert]).unflatten(-1, (-1, 2)).unbind(-1)
    gate = gate.clamp(max=7)
    return expert, gate * torch.sigmoid(1.702 * gate) * (linear.clamp(-7, 7) + 1)


def test_a_thread_has_no_elements_side_by_side_that_are_apart_in_memory():
    """Check that threads have no eight elements where each is loaded by itself: 60 us on an H200, and 32 apart."""
    tensors = torch.zeros(4000, dtype=torch.int64), torch.randn(32, 5760), torch.randn(4000, 5760)
    inputs = [t.bfloat16() if t.is_floating_point() else t for t in tensors]
    (kernel,) = offline.compile_for_gpu(activated_halves, inputs, compile_fx=bridge_backend).kernels
    assert "min_elem_per_thread=0" in kernel.source


def pooled(activation, size, step, around):
    def function(x, bias):
        y = activation(x + bias[:, None, None])
        return y, F.max_pool2d(y, size, step, around)

    return function


@pytest.mark.parametrize(
    ("function", "kernels"),
    [(pooled(F.gelu, 3, 1, 1), 2), (pooled(F.silu, 2, 2, 0), 1)],
    ids=["each nine times", "each once"],
)
def test_a_window_of_values_is_not_computed_for_each_of_its_places(function, kernels):
    """Check that a window of values is not computed for each of its places.

    GELU below a pool of 3 x 3, in one kernel, took 179 us on an H100 where two took 45.
    """
    x = torch.randn(32, 256, 28, 28, dtype=torch.bfloat16).to(memory_format=torch.channels_last)
    inputs = x, torch.randn(256, dtype=torch.bfloat16)
    assert len(offline.compile_for_gpu(function, inputs, compile_fx=bridge_backend).launches) == kernels
    refused = [group.reason for group in bridge.report().groups if not group.fused]
    assert refused == ([Reason.not_profitable] if kernels == 2 else [])


def weighted_by_neighbours(x, w):
    """Weigh each channel by its own mean and those of its neighbours: channel attention of ECA."""
    means = x.float().mean((2, 3))
    weights = means * w[1] + F.pad(means, (1, -1)) * w[0] + F.pad(means, (-1, 1)) * w[2]
    return (x * weights.sigmoid()[..., None, None]).to(x.dtype)


def test_values_of_rows_under_a_mask_are_not_loaded_for_each_of_their_elements():
    """Check that values of rows under a mask are not loaded for each element of the rows.

    The pads, kept for the gradient, took 15.4 us in the kernel of all pixels on an H200, 9.3 in three kernels.
    """
    inputs = torch.randn(32, 256, 28, 28, dtype=torch.bfloat16), torch.randn(3)
    forward, _ = offline.compile_for_gpu(
        weighted_by_neighbours, inputs, compile_fx=bridge_backend, backward=True
    ).graphs
    *_, last = forward.kernels
    assert len(forward.kernels) == 3 and last.source.count("tl.store(") == 1
