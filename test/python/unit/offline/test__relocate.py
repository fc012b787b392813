"""Test what moves a traced graph to a GPU that is not there: devices, fake tensors, constants and attention."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from bridge.offline._relocate import GPU, convolution_format, relocate
from bridge.offline._stubs import gpu_stubs
from bridge.offline.arch import resolve_arch

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def gpu():
    with gpu_stubs(resolve_arch(90)):
        yield


def fake(*shape, dtype=torch.float32):
    with FakeTensorMode():
        return torch.empty(shape, dtype=dtype)


def placeholder(graph, name, value):
    node = graph.placeholder(name)
    node.meta["val"] = value
    return node


def test_devices_and_tensors_are_on_the_gpu_and_one_tensor_stays_one():
    value, graph = fake(4, 8), torch.fx.Graph()
    x = placeholder(graph, "x", value)
    full = graph.call_function(aten.full.default, ([4, 8], 1), {"device": torch.device("cpu")})
    graph.output((x, full))
    gm, (first, second, number) = relocate(torch.fx.GraphModule({}, graph), [value, value, 3])
    assert first is second
    assert first is x.meta["val"]
    assert (first.device, first.stride(), number) == (GPU, (8, 1), 3)
    assert full.kwargs == {"device": GPU}
    assert "cuda" in gm.code


def test_other_devices_stay_as_they_are():
    graph = torch.fx.Graph()
    full = graph.call_function(aten.full.default, ([2], 1), {"device": torch.device("meta")})
    graph.output(full)
    relocate(torch.fx.GraphModule({}, graph), [])
    assert full.kwargs == {"device": torch.device("meta")}


@pytest.mark.parametrize(("shape", "copied"), [((3,), True), ((), False)])
def test_constant_is_copied_to_the_gpu_and_a_number_is_not(shape, copied):
    graph = torch.fx.Graph()
    constant = graph.get_attr("constant")
    lifted = graph.call_function(aten.lift_fresh_copy.default, (constant,))
    lifted.meta["val"] = fake(*shape)
    result = graph.call_function(aten.neg.default, (lifted,))
    graph.output(result)
    relocate(torch.fx.GraphModule({"constant": torch.zeros(shape)}, graph), [])
    assert lifted.meta["val"].device.type == "cpu"
    (operand,) = result.args
    if copied:
        assert operand.target is torch.ops.prims.device_put.default
        assert operand.args == (lifted, GPU)
    else:
        assert operand is lifted


@pytest.mark.parametrize(
    ("dtype", "masked", "target"),
    [
        (torch.bfloat16, False, aten._scaled_dot_product_flash_attention.default),
        (torch.bfloat16, True, aten._scaled_dot_product_efficient_attention.default),
        (torch.float32, False, aten._scaled_dot_product_efficient_attention.default),
    ],
)
def test_attention_becomes_the_gpus(dtype, masked, target):
    graph = torch.fx.Graph()
    q, k, v, mask = (placeholder(graph, name, fake(1, 2, 16, 8, dtype=dtype)) for name in "qkvm")
    attention = graph.call_function(
        aten._scaled_dot_product_flash_attention_for_cpu.default,
        (q, k, v, 0.0, True),
        {"scale": 0.5, **({"attn_mask": mask} if masked else {})},
    )
    graph.output(attention)
    relocate(torch.fx.GraphModule({}, graph), [])
    assert attention.target is target
    assert attention.kwargs == {"scale": 0.5}
    flash = (q, k, v, 0.0, True, False)
    efficient = (q, k, v, mask if masked else None, False, 0.0, True)
    assert attention.args == (flash if target is aten._scaled_dot_product_flash_attention.default else efficient)


@pytest.mark.parametrize(("shape", "kernel"), [((2, 4, 8, 8), (4, 1, 3, 3)), ((2, 4, 6, 8, 8), (8, 4, 1, 2, 2))])
def test_channels_are_last_in_what_a_convolution_returns_where_its_input_has_them_last(shape, kernel):
    last = {4: torch.channels_last, 5: torch.channels_last_3d}[len(shape)]
    plain, weight = torch.empty(shape), torch.empty(kernel)
    assert convolution_format(plain, weight, None) == torch.contiguous_format
    assert convolution_format(plain.to(memory_format=last), weight, None) == last
    assert convolution_format(plain.double().to(memory_format=last), weight, None) == torch.contiguous_format
