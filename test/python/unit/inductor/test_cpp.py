"""Test what Inductor's C++ code generator makes of a kernel, found out by a trial."""

from __future__ import annotations

import re

import pytest
import torch
from emitted_claims import loop_nests, wrong_claims
from functions import rows, sample
from torch._inductor.utils import run_and_get_code

import bridge
from bridge.diagnostics.recording import recorded
from bridge.inductor import cpp
from bridge.lowering.lift import commit


def sum_and_product(x, y):
    """Add up planes, in loops without vectors, and multiply, in loops over each row with vectors."""
    return (x.sum(dim=-1) + 1) @ y


def planes(size):
    apart = torch.empty_strided([size, size, 30], [30 * size + 300, 30, 1]).normal_()
    return [apart, torch.randn(size, size)]


@pytest.mark.parametrize("size", [20, 32])
def test_cpp_loops_that_come_apart_are_not_claimed(size, compiler):
    """Check that C++ loops that come apart are not claimed.

    Inductor's code generator gives up on common loops where it splits one of them for one member only.
    """
    _, (inductors,) = run_and_get_code(compiler(sum_and_product, backend="inductor"), *planes(size))
    torch._dynamo.reset()
    with recorded() as recording:
        _, (code,) = run_and_get_code(compiler(sum_and_product, backend="bridge"), *planes(size))
    report = bridge.report()
    assert loop_nests(code) == loop_nests(inductors) == report.kernels_before == report.kernels_after == 2
    assert [(group.fused, group.reason) for group in report.groups] == [(False, bridge.Reason.not_liftable)]
    assert "own loops" in report.groups[0].detail and wrong_claims(report, [], recording.kernels)[1:] == []
    assert _cpp_functions(code) == _cpp_functions(inductors)


def _cpp_functions(code):
    return re.findall(r"^    \{\n.*?^    \}\n", code, re.MULTILINE | re.DOTALL)


def test_cpp_trial_leaves_no_trace(compiler, monkeypatch):
    """Check that a C++ trial changes no code where the loops stay together."""
    codes, tried = [], []

    def tries(kernel):
        tried.append(hasattr(kernel, "get_outer_nodes"))
        return cpp.comes_apart(kernel)

    for apart in (tries, lambda kernel: False):
        monkeypatch.setattr(commit, "comes_apart", apart)
        torch._dynamo.reset()
        _, (code,) = run_and_get_code(compiler(rows, backend="bridge"), sample())
        codes.append(code.partition("\n")[2])  # below the number of the graph
    assert loop_nests(code) == bridge.report().kernels_after == len(bridge.report().fused) == 1
    assert tried == [True] and codes[0] == codes[1]


def softmax_turned(x):
    y = torch.softmax(x, -1)
    first, second = y.chunk(2, -1)
    return torch.cat([-second, first], -1)


LAYOUTS = {
    "transposed": lambda: torch.randn(20, 20).t(),  # Inductor alone is wrong: it makes one kernel of the derivative
    "channels-last": lambda: torch.randn(2, 20, 3, 20).permute(0, 2, 3, 1),
    "sliced": lambda: torch.randn(20, 40)[:, ::2],
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("simdlen", [None, 256, 1], ids=["widest", "avx2", "scalar"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_buffer_of_one_row_is_not_for_several(layout, simdlen, compiler):
    """Check that a buffer of one row between loops is not used for several rows.

    Inductor keeps one row there, and vectors over several rows would each get the last one.
    """
    x = LAYOUTS[layout]()
    options = {"cpp.simdlen": simdlen}
    compiled = compiler(softmax_turned, backend="bridge", options=options)
    expected, found = (_with_gradient(function, x) for function in (softmax_turned, compiled))
    torch.testing.assert_close(found, expected)


def _with_gradient(function, x):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        result = function(x)
        weights = torch.linspace(-1, 1, result.numel()).view(result.shape)
        return result, torch.autograd.grad((result * weights).sum(), x)[0]


def normed_channels(x, weight, bias):
    """Compute a group norm whose gradient has sums of each channel and image, channels outside."""
    y = torch.nn.functional.group_norm(x, 2, weight, bias)
    z = torch.nn.functional.silu(y)
    first, second = z.chunk(2, 1)
    normed = torch.nn.functional.layer_norm(z.permute(0, 2, 3, 1), (4,))
    return first * second, normed, z.mean((2, 3)), y.softmax(1)


def test_cpp_vectors_end_with_the_loop_that_stores_them(compiler):
    """Check that C++ vectors end with the loop that stores them.

    Four channels outside of two images: a vector of 16 sums was stored, beyond the end of the buffer.
    """
    shape = torch.randn(2, 4, 2, 32).half().contiguous(memory_format=torch.channels_last)
    inputs = [shape, *(torch.randn(4).half() for _ in range(2))]
    inputs = [each.detach().requires_grad_() for each in inputs]

    def step(function):
        sum(each.float().sum() for each in function(*inputs)).backward()

    compiled = compiler(normed_channels, backend="bridge")
    with torch.enable_grad():
        _, codes = run_and_get_code(step, compiled)
    stores = re.findall(r"tmp_acc\d+_vec\.store\(out_ptr.*", "\n".join(codes))
    assert stores and all("static_cast<int64_t>(4L));" in line for line in stores), stores
    apart = [why for group in bridge.report().groups for why in [group.detail, *(text for _, text in group.apart)]]
    assert any("store whole vectors" in why for why in apart), apart


PRODUCTS = {
    "products": lambda x: (x.prod(0), x.unflatten(0, (5, 13)).prod(0).prod(0)),
    "integers": lambda x: ((x * 4).int().sum(0, dtype=torch.int32), (x * 4).int().unflatten(0, (5, 13)).sum(0).sum(0)),
    "maxima": lambda x: (x.amax(0), x.unflatten(0, (5, 13)).amax(0).amax(0)),
    "flags": lambda x: ((x > 2).any(0), (x > 2).unflatten(0, (5, 13)).any(0).any(0)),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_vector_of_products_that_two_nodes_store_is_declared_once(name, dtype, compiler):
    """Check that a vector of equal products that two nodes store is declared once in C++."""
    x = torch.rand(65, 32).to(dtype) / 16 + 1
    results = compiler(PRODUCTS[name], backend="bridge")(x)
    references = PRODUCTS[name](x.double())
    for result, reference in zip(results, references, strict=True):
        torch.testing.assert_close(result.double(), reference.double(), rtol=2e-2, atol=0)
