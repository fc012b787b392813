"""Test that values that are saved for the backward have contiguous rows where kernels reduce the rows."""

from __future__ import annotations

import contextlib

import pytest
import torch
import torch.nn.functional as F
from training import graphs
from uncompiled import without_cpp

import bridge
from bridge import graph_passes
from bridge.backend import bridge as bridge_backend
from bridge.inductor import strides
from bridge.offline import parse_wrapper

CHANNELS, SIDE, PATCH = 48, 12, 4


def tokens(image, weight):
    return F.conv2d(image, weight, stride=PATCH).flatten(2).transpose(1, 2)


def transformer(image, weight, *weights):
    """Compute tokens of patches, whose channels come first in memory, and a sum of residuals for each weight."""
    x = tokens(image, weight)
    for projection in weights:
        x = x + F.linear(F.layer_norm(x, x.shape[-1:]), projection)
    return x


def loss(image, weight, *weights):
    return transformer(image, weight, *weights).pow(2).mean()


def inputs(layers, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    image = torch.randn(2, 3, SIDE, SIDE, generator=generator).to(dtype)
    shapes = [(CHANNELS, 3, PATCH, PATCH), *[(CHANNELS, CHANNELS)] * layers]
    weights = [(torch.randn(shape, generator=generator) / 8).to(dtype).requires_grad_() for shape in shapes]
    return [image, *weights]


@contextlib.contextmanager
def looked_at(seen):
    """Record in `seen`, for each forward, the lines of the pass and the strides that it may choose."""
    given = graph_passes.PASSES["contiguous_rows"]

    def watched(graph):
        lines = list(given(graph))
        saved = strides.results(graph).saved
        if saved:
            seen.append((lines, {tuple(node.meta["val"].stride()) for node in saved}))
        yield from lines

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(graph_passes.PASSES, "contiguous_rows", watched)
        yield


def saved(function, tensors, **options):
    """Return (lines of the pass, strides of the values that are saved)."""
    torch._dynamo.reset()
    seen: list[tuple[list[str], set]] = []
    with looked_at(seen), bridge.config.patch(options), without_cpp():
        torch.compile(function, backend="bridge", fullgraph=True)(*tensors)
    return seen[0] if seen else ([], set())


def gradients(function, tensors, backend):
    torch._dynamo.reset()
    leaves = [tensor for tensor in tensors if tensor.requires_grad]
    result = torch.compile(function, backend=backend, fullgraph=True)(*tensors)
    return [result.detach(), *torch.autograd.grad(result.sum(), leaves)]


ROWS = (9 * CHANNELS, CHANNELS, 1)
CHANNELS_FIRST = (9 * CHANNELS, 1, 9)


def test_should_save_residuals_with_contiguous_rows():
    lines, orders = saved(loss, inputs(3))
    assert len(lines) == 1 and "saved with contiguous rows" in lines[0]
    assert ROWS in orders and CHANNELS_FIRST not in orders
    assert "test_contiguous_rows.py:" in lines[0]


def test_should_be_as_eager_without_the_option():
    assert saved(loss, inputs(3), contiguous_rows=False) == ([], set())  # the pass is not run


def test_should_not_change_one_norm():
    """Check that one norm changes nothing: the tokens would be loaded across memory once either way."""
    lines, _ = saved(lambda *args: F.layer_norm(tokens(*args) * 2, (CHANNELS,)).pow(2).mean(), inputs(0))
    assert lines == []


def test_should_not_change_heads_whose_elements_are_contiguous():
    """Check that heads with contiguous elements change nothing: no row is across memory."""

    def rotated(image, weight, other):
        x = tokens(image, weight).contiguous()
        heads = (x @ other).unflatten(-1, (4, 12)).transpose(1, 2)
        first, second = heads.chunk(2, -1)
        turned = heads * x[:, None, :, :12].sin() + torch.cat([-second, first], -1) * x[:, None, :, 12:24].cos()
        return (turned.softmax(-1) * turned).pow(2).mean()

    assert saved(rotated, inputs(1))[0] == []


def reduced_and_read(image, weight, other):
    """Compute a value with the strides of convolutions, whose rows two kernels reduce."""
    x = torch.sin(tokens(image, weight))
    read = F.conv2d(x.transpose(1, 2).unflatten(2, (3, 3)), other[:, :, None, None])
    return read.pow(2).mean() + (x.amax(-1) * F.softmax(x, -1)[..., 0]).mean()


def test_should_not_change_what_convolutions_read():
    """Check that values that convolutions read keep their strides.

    One kernel less would load across memory, but two more would: of the sine and the second convolution.
    """
    assert saved(reduced_and_read, inputs(1))[0] == []


def test_should_not_change_what_the_user_sees():
    """Check that the result has eager's strides, whatever strides the values before it have."""
    tensors = inputs(3)
    torch._dynamo.reset()
    with without_cpp():
        result = torch.compile(transformer, backend="bridge", fullgraph=True)(*tensors)
    assert result.stride() == transformer(*tensors).stride() == CHANNELS_FIRST


def test_should_not_look_at_inference():
    seen: list[tuple[list[str], set]] = []
    torch._dynamo.reset()
    with looked_at(seen), torch.no_grad(), without_cpp():
        torch.compile(loss, backend="bridge", fullgraph=True)(*inputs(3))
    assert seen == []


def test_should_leave_what_a_users_operator_sees():
    """Check that an operator of the user sees the strides of eager: its result may depend on them."""

    @torch.library.custom_op("bridge_test::by_stride", mutates_args=())
    def by_stride(x: torch.Tensor) -> torch.Tensor:
        return torch.full_like(x, x.stride(-1), memory_format=torch.contiguous_format)

    by_stride.register_fake(lambda x: torch.empty_like(x, memory_format=torch.contiguous_format))
    by_stride.register_autograd(lambda ctx, grad: grad, setup_context=lambda ctx, inputs, output: None)

    def function(*args):
        x = transformer(*args)
        return (x * by_stride(x + 1)).pow(2).mean()

    assert saved(function, inputs(3))[0] == []


@pytest.mark.in_turn(2)
@pytest.mark.one_in(2)
@pytest.mark.parametrize(("dtype", "dynamic"), [(torch.float32, True), (torch.bfloat16, False)])
def test_gradients_are_as_near_as_inductors(dtype, dynamic):
    tensors = inputs(2, dtype)
    if dynamic:
        torch._dynamo.mark_dynamic(tensors[0], 0)
    found, expected = (gradients(loss, tensors, backend) for backend in ("bridge", "inductor"))
    wide = [tensor.detach().double().requires_grad_(tensor.requires_grad) for tensor in tensors]
    exact = gradients(loss, wide, "eager")
    for mine, theirs, right in zip(found, expected, exact, strict=True):
        distance = [(value.double() - right).norm() for value in (mine, theirs)]
        assert distance[0] <= 1.05 * distance[1] + 1e-6 * right.norm()


def kernels(**options):
    """Return the numbers of launches, forward and backward, for rows that take several programs each across memory."""
    image = torch.randn(8, 3, 56, 56, dtype=torch.bfloat16)
    shapes = [(1152, 3, PATCH, PATCH), *[(1152, 1152)] * 3]
    weights = [torch.randn(shape, dtype=torch.bfloat16).requires_grad_() for shape in shapes]
    with bridge.config.patch(options):
        codes = graphs(loss, (image, *weights), bridge_backend)  # of which no product is computed
    return [len(parse_wrapper(code).launches) for code in codes]


@pytest.mark.in_turn(2)
def test_fewer_kernels_where_rows_are_contiguous():
    forward, backward = kernels()
    before = kernels(contiguous_rows=False)
    assert forward <= before[0] and backward < before[1]
