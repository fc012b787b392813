"""Test that library calls with the same value read one buffer, where Inductor would pad and copy it for each."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from emitted import run_emitted

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend

SIDE = 7


def windows(x):
    batch, height, width, channels = x.shape
    x = F.layer_norm(x, x.shape[-1:])
    x = x.view(batch, height // SIDE, SIDE, width // SIDE, SIDE, channels)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, SIDE * SIDE, channels)


def heads(x):
    return x.unflatten(-1, (-1, 8)).transpose(1, 2)


def attention(x, *weights):
    """Compute attention, so that the products are not next to the result, where Inductor pads nothing."""
    tokens = windows(x)
    query, *key_and_value = [heads(F.linear(tokens, weight, x[0, 0, 0])) for weight in weights]
    return F.scaled_dot_product_attention(query, key_and_value[0], key_and_value[-1])


def inputs(count, channels=72, batch=2, dtype=torch.bfloat16):
    generator = torch.Generator().manual_seed(0)
    shapes = [(batch, 2 * SIDE, 2 * SIDE, channels), *[(channels, channels)] * count]
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def stored(function, tensors, **options):
    """Return (tensors that kernels store, values that got one buffer)."""
    torch._dynamo.reset()
    with bridge.config.patch(options):
        result = offline.compile_for_gpu(function, tensors, compile_fx=bridge_backend)
    kernels = {kernel.name: kernel for kernel in result.kernels}
    return sum(len(offline.count_stores(kernels[name])) for name in result.launches), shared()


def shared():
    return bridge.report().counters.get("share_operands", 0)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("count", [2, 3])
def test_windows_of_several_projections(count):
    assert stored(attention, inputs(count), share_operands=False) == (count, 0)
    assert stored(attention, inputs(count)) == (1, 1)


def one_as_it_is(x, weight):
    tokens = windows(x)
    similar = heads(tokens @ tokens.transpose(-1, -2) @ tokens)
    return F.scaled_dot_product_attention(similar, heads(F.linear(tokens, weight, x[0, 0, 0])), similar)


def and_a_kernel(x, left, right):
    tokens = windows(x)
    query, key = (heads(F.linear(tokens, weight, x[0, 0, 0])) for weight in (left, right))
    return F.scaled_dot_product_attention(query, key, heads(tokens * tokens.amax(1, keepdim=True)))


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("function", "weights"), [(attention, 3), (one_as_it_is, 1), (and_a_kernel, 2)])
def test_numerics(function, weights):
    tensors = inputs(weights, channels=24, dtype=torch.float32)
    result, _ = run_emitted(function, tensors, bridge_backend)
    exact = function(*[t.double() for t in tensors])
    assert shared() == 1
    assert (result - exact).norm() < 1e-5 * exact.norm()


def other_order(x, left, right):
    """Compute attention whose calls read the elements in two orders."""
    tokens = windows(x)
    turned = tokens.transpose(0, 1).reshape(tokens.shape)
    query, key = (heads(F.linear(t, w, x[0, 0, 0])) for t, w in ((tokens, left), (turned, right)))
    return F.scaled_dot_product_attention(query, key, key)


def test_is_left():
    assert stored(attention, inputs(3, channels=128))[1] == 0  # long strides are multiples of 64 all the same
    assert stored(other_order, inputs(2))[1] == 0
    assert stored(attention, inputs(3), share_operands=False)[1] == 0


def test_symbolic_sizes():
    tensors = inputs(3)
    torch._dynamo.reset()
    torch._dynamo.mark_dynamic(tensors[0], 0)
    offline.compile_for_gpu(attention, tensors, compile_fx=bridge_backend, dynamic=None)
    assert shared() == 0


def test_on_a_cpu(compiler):
    tensors = inputs(3, dtype=torch.float32)
    exact = attention(*[t.double() for t in tensors])
    result = compiler(attention, backend="bridge")(*tensors)
    assert (result - exact).norm() < 1e-5 * exact.norm()


def test_report_says_where():
    stored(attention, inputs(3))
    (line,) = [line for line in bridge.report().choices if "one buffer" in line]
    assert "test_share_operands.py:" in line and "3 library calls" in line


def after_the_first(x, more, weight):
    return F.rms_norm(x[:, 1:].sin(), x.shape[-1:]) @ weight


def after_others(x, more, weight):
    return F.rms_norm(torch.cat([x, more], 1).sin(), x.shape[-1:]) @ weight


def every_token(x, more, weight):
    return F.rms_norm(x.sin(), x.shape[-1:]) @ weight


def also_read_by_a_kernel(x, more, weight):
    rows = F.rms_norm(x[:, 1:].sin(), x.shape[-1:])
    return rows @ weight, rows.amax(-1)


def attention_with_bias(query, key, bias, weight):
    """Attend with a bias that a product has made, its heads last; Inductor alone copies it for the call."""
    heads = (bias.view(3 * 24 * 16, 64) @ weight).view(3, 24, 16, 8).permute(0, 3, 1, 2)
    attend = torch.ops.aten._scaled_dot_product_efficient_attention
    return attend(query, key, key, heads.contiguous().expand(3, 8, 24, 16), False)[0]


def test_strides_of_what_attention_reads_are_left():
    """Emit a bias whose last dimension is dense, as the kernel of attention demands."""
    shapes = (3, 8, 24, 32), (3, 8, 16, 32), (3, 24, 16, 64), (64, 8)
    tensors = [torch.randn(shape, dtype=torch.float16) for shape in shapes]
    torch._dynamo.reset()
    code = offline.compile_for_gpu(attention_with_bias, tensors, compile_fx=bridge_backend, dynamic=True).code
    assert "(3, 8, 24, 16), (3072, 384, 16, 1)" in code
    assert shared() == 0


def of_any_length(function, dtype=torch.float32, **options):
    """Return (kernels, values that got one buffer), with symbolic numbers of tokens."""
    torch._dynamo.reset()
    tensors = [torch.randn(shape).to(dtype) for shape in ((4, 8, 16), (4, 6, 16), (16, 16))]
    for tensor in tensors[:2]:
        torch._dynamo.maybe_mark_dynamic(tensor, 1)
    with bridge.config.patch(options):
        result = offline.compile_for_gpu(function, tensors, compile_fx=bridge_backend, dynamic=None)
    return len(result.launches), shared()


@pytest.mark.parametrize("function", [after_the_first, after_others])
def test_sizes_made_of_symbols_take_no_copy(function):
    kernels, _ = of_any_length(function, share_operands=False)
    assert of_any_length(function) == (kernels - 1, 1)


def test_a_symbol_alone_is_left():
    assert of_any_length(every_token) == (1, 0)


def test_sizes_made_of_symbols_cost_no_digits():
    assert of_any_length(also_read_by_a_kernel, torch.bfloat16)[1] == 0
    assert of_any_length(also_read_by_a_kernel, torch.float32)[1] == 1


@pytest.mark.parametrize("function", [after_the_first, after_others, also_read_by_a_kernel])
def test_numerics_of_sizes_made_of_symbols(function, compiler):
    compiled = compiler(function, backend="bridge", dynamic=True)
    for length in (8, 11):
        tensors = [torch.randn(shape) for shape in ((4, length, 16), (4, 6, 16), (16, 16))]
        torch.testing.assert_close(compiled(*tensors), function(*tensors))
    assert shared() == 1
