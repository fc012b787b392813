"""Test what kept kernels apart where sizes are symbols, and not where they are numbers."""

from __future__ import annotations

import pytest
import torch
from emitted import emitted_for, run_emitted
from functions import norm
from torch._dynamo.utils import counters

import bridge
from bridge.backend import bridge as bridge_backend
from bridge.offline import compile_for_gpu
from bridge.offline.interpret import interpreter
from bridge.support.fresh_code import fresh_entry

#: Has Dynamo trace numbers that are read off tensors.
CAPTURED = torch._dynamo.config.patch(capture_scalar_outputs=True)


def double(results):
    """Return a tensor, or each of several, in float64."""
    return results.double() if torch.is_tensor(results) else tuple(map(double, results))


def made(*shapes, dynamic):
    """Return random tensors of which each has its own symbols for the dimensions `dynamic`."""
    generator = torch.Generator().manual_seed(0)
    tensors = [torch.randn(shape, generator=generator) for shape in shapes]
    for tensor, axes in zip(tensors, dynamic, strict=True):
        for axis in axes:
            torch._dynamo.mark_dynamic(tensor, axis)
    return tensors


def compiled_once(function, cases):
    """Check results against float64, of one compiled function for all sizes, and return what was emitted."""
    codes: list[str] = []
    torch._dynamo.reset()
    counters.clear()
    with emitted_for("sm_90", codes), bridge.config.patch(strict=True):
        compiled = torch.compile(fresh_entry(function), backend=bridge_backend)
        for inputs in cases:
            found, expected = compiled(*inputs), function(*[x.double() for x in inputs])
            torch.testing.assert_close(double(found), expected, rtol=1e-4, atol=1e-5)
    return codes


def mixed_heads(scores, weights):
    """Return scores whose heads are mixed after the softmax."""
    return torch.einsum("bhij,hg->bgij", scores.softmax(-1), weights)


@pytest.mark.parametrize("batch", [2, 3, 7])
def test_scores_of_a_symbolic_number_of_images_were_stored_in_the_order_of_queries(batch):
    """Check that the heads, which are neighbours in what a product reads, follow each other in the rows of a kernel."""
    inputs = made((batch, 16, 32, 64), (16, 16), dynamic=[(0,), ()])
    result, (code,) = run_emitted(mixed_heads, inputs, bridge_backend, dynamic=None)
    torch.testing.assert_close(result.double(), mixed_heads(*[x.double() for x in inputs]), rtol=1e-4, atol=1e-5)
    assert code.count(".run(") == 1, bridge.report()


def mixture(outputs, weights, residual):
    """Return the normed sum of what the experts of each token give."""
    return norm((outputs * weights.softmax(-1)[..., None]).sum(1) + residual) + residual


def tokens_of_mixture(tokens):
    return made((tokens, 4, 64), (tokens, 4), (tokens, 64), dynamic=[(0,)] * 3)


def test_tokens_whose_number_is_another_symbol_in_each_tensor_had_kernels_of_their_own():
    """Check that sizes of which a guard says that they are equal are one size: the gradients are one kernel."""
    compiled = compile_for_gpu(mixture, tokens_of_mixture(600), compile_fx=bridge_backend, dynamic=None, backward=True)
    assert [len(graph.launches) for graph in compiled.graphs] == [1, 1], bridge.report()


def normed_gate(x, weight):
    """Return the norm of what a gate lets through."""
    gated, by = x.chunk(2, -1)
    return torch.nn.functional.layer_norm(torch.nn.functional.gelu(gated) * by, weight.shape, weight)


def test_sums_of_columns_kept_the_halves_of_rows_of_a_symbolic_batch_apart():
    """Check that the gradients of both halves are in the kernel of the rows, which the sums of columns are not."""
    inputs = made((6, 50, 512), (256,), dynamic=[(0, 1), ()])
    compiled = compile_for_gpu(normed_gate, inputs, compile_fx=bridge_backend, dynamic=None, backward=True)
    assert [len(graph.launches) for graph in compiled.graphs] == [1, 3], bridge.report()


def check_gradients(function, cases, kernels, atol):
    """Check gradients against float64, of one compilation for all sizes, with so many kernels forward and back."""
    codes: list[str] = []
    torch._dynamo.reset()
    counters.clear()
    with emitted_for("sm_90", codes), torch.enable_grad(), bridge.config.patch(strict=True, training=True):
        compiled = torch.compile(fresh_entry(function), backend=bridge_backend)
        for inputs in cases:
            exact = [t.double().requires_grad_() for t in inputs]
            given = [t.requires_grad_() for t in inputs]
            found = torch.autograd.grad(compiled(*given).sin().sum(), given)
            expected = torch.autograd.grad(function(*exact).sin().sum(), exact)
            for one, other in zip(found, expected, strict=True):
                torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=atol)
    assert counters["stats"]["unique_graphs"] == 1
    assert [code.count(".run(") for code in codes] == kernels, bridge.report()


def test_gradients_of_halves_of_rows_of_a_symbolic_batch_are_what_eager_has_in_float64():
    sizes = ((4, 40), (3, 7))
    cases = [made((batch, tokens, 128), (64,), dynamic=[(0, 1), ()]) for batch, tokens in sizes]
    check_gradients(normed_gate, cases, [1, 3], atol=1e-4)


def normed_nodes(nodes, mask):
    """Return the nodes of each graph, normed by the mean square of those that are there."""
    there = mask[..., None]
    y = nodes * there
    return y * torch.rsqrt((y * y).sum(1, keepdim=True) / there.sum(1, keepdim=True).clamp(min=1) + 1e-5)


def test_nodes_whose_number_is_another_symbol_in_each_tensor_are_what_eager_has_in_float64():
    torch._dynamo.reset()
    counters.clear()
    compiled = torch.compile(normed_nodes, backend="bridge", options={"strict": True, "training": True}, fullgraph=True)
    for graphs, nodes in ((5, 7), (2, 3), (13, 16)):
        x, mask = made((graphs, nodes, 32), (graphs, nodes), dynamic=[(0, 1)] * 2)
        x, mask, exact = x.requires_grad_(), (mask > -0.5).float(), x.detach().double().requires_grad_()
        for axis in (0, 1):
            torch._dynamo.mark_dynamic(mask, axis)
        with interpreter(), torch.enable_grad():
            (found,) = torch.autograd.grad(compiled(x, mask).sin().sum(), x)
        (expected,) = torch.autograd.grad(normed_nodes(exact, mask.double()).sin().sum(), exact)
        torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-5)
    assert counters["stats"]["unique_graphs"] == 1
    assert any(group.fused for group in bridge.report().groups), bridge.report()


def windows(image, weight):
    """Return the windows of an image that is normed and rolled."""
    batch, height, width, channels = image.shape
    torch._check(height % 7 == 0)
    torch._check(width % 7 == 0)
    y = torch.roll(norm(image) * weight, (-3, 2), (1, 2)).view(batch, height // 7, 7, width // 7, 7, channels)
    return y.transpose(2, 3).reshape(-1, 49, channels)


def beside_itself(image, weight):
    """Return the rolled lines of a normed image, added to the image."""
    return torch.roll(norm(image) * weight, 1, 1) + image


@pytest.mark.parametrize(
    ("function", "sizes", "kernels"),
    [(windows, ((2, 14, 21), (3, 28, 14), (5, 14, 35)), 1), (beside_itself, ((2, 5, 6), (3, 2, 9), (7, 13, 3)), 2)],
)
def test_images_of_symbolic_sides_were_rolled_by_kernels_of_their_own(function, sizes, kernels):
    """Check that lines shifted by a remainder of a symbol need one kernel, if all that it reads is shifted."""
    codes = compiled_once(function, [made((*size, 32), (32,), dynamic=[(0, 1, 2), ()]) for size in sizes])
    assert counters["stats"]["unique_graphs"] == 1
    assert [code.count(".run(") for code in codes] == [kernels], bridge.report()


def change(tokens):
    """Return the normed tokens less the next ones."""
    return norm(tokens[:, :-1]) - tokens[:, 1:]


def framed(image):
    """Return an image with a frame of zeros, and the norm of its channels."""
    image = torch.nn.functional.pad(image, (0, 0, 1, 1, 1, 1))
    return norm(image), image


def joined(text, image):
    """Return the norm of the tokens of a text and of an image, and that of the image's."""
    tokens = norm(torch.cat([text, image], 1))
    return tokens[:, text.shape[1] :], tokens


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (change, [[(3, 5)], [(2, 3)], [(4, 9)]]),
        (framed, [[(3, 5, 4)], [(2, 3, 7)], [(4, 2, 3)]]),
        (joined, [[(3, 5), (3, 4)], [(2, 2), (2, 9)], [(5, 3), (5, 3)]]),
    ],
)
def test_rows_that_are_a_sum_of_products_had_kernels_of_their_own(function, shapes):
    """Check that `n*t - n` rows are one kernel: Inductor does not know that they are `n` times so many."""
    cases = [made(*((*size, 64) for size in sizes), dynamic=[range(len(size)) for size in sizes]) for sizes in shapes]
    codes = compiled_once(function, cases)
    assert {code.count(".run(") for code in codes} == {1}, bridge.report()


def gate_of_halves(tokens):
    """Return the first half of the tokens, gated by the second, and normed."""
    values, gates = tokens.chunk(2, 1)
    return norm(values * gates.sigmoid())


def test_gradients_of_halves_of_a_symbolic_number_of_tokens_had_a_kernel_of_their_own():
    """Check that both halves of the gradient are made where the rows are reduced: each is half 0, or half 1, alone."""
    cases = [made((batch, tokens, 64), dynamic=[(0, 1)]) for batch, tokens in ((3, 8), (2, 6), (5, 22))]
    check_gradients(gate_of_halves, cases, [1, 1], atol=1e-5)


def gate_of_prefix(tokens, length):
    """Return what a gate lets through of the normed first tokens of each sequence."""
    first, second = norm(tokens[:, :length]).chunk(2, -1)
    return first * second.sigmoid()


def gate_of_counted_prefix(tokens, length):
    """Return the same for a length that is read off a tensor."""
    length = length.item()
    torch._check(length >= 0)
    torch._check(length <= tokens.shape[1])
    return gate_of_prefix(tokens, length)


@pytest.mark.parametrize("function", [gate_of_prefix, gate_of_counted_prefix])
def test_tokens_that_may_be_none_had_strides_that_no_subscripts_were_found_for(function):
    """Check that `Max(1, length)` in a stride is the length wherever there is a token, and that none may be there."""
    codes: list[str] = []
    torch._dynamo.reset()
    with emitted_for("sm_90", codes), bridge.config.patch(strict=True), CAPTURED:
        compiled = torch.compile(fresh_entry(function), backend=bridge_backend, dynamic=True, fullgraph=True)
        for batch, tokens, length in ((3, 50, 20), (2, 7, 7), (4, 9, 2), (2, 130, 129), (3, 5, 0)):
            (x,) = made((batch, tokens, 64), dynamic=[(0, 1)])
            torch._dynamo.mark_static(x, 2)
            given = length if function is gate_of_prefix else torch.tensor(length)
            expected = gate_of_prefix(x.double(), length)
            torch.testing.assert_close(compiled(x, given).double(), expected, rtol=1e-4, atol=1e-5)
    assert codes[0].count(".run(") == 1


def frames_of_four(tokens):
    """Return what a gate lets through of each four tokens as one; up to three tokens are left over."""
    batch, length, channels = tokens.shape
    first, second = norm(tokens[:, : length // 4 * 4].reshape(batch, length // 4, 4 * channels)).chunk(2, -1)
    return first * second.sigmoid()


def test_frames_beside_tokens_that_are_left_over_were_not_proven_to_be_inside():
    """Check that no divisibility is asked for: `4 * (s floordiv 4)` tokens are never more than there are."""
    cases = [made((batch, tokens, 16), dynamic=[(0, 1)]) for batch, tokens in ((3, 41), (2, 11), (4, 9), (5, 131))]
    codes = compiled_once(frames_of_four, cases)
    assert counters["stats"]["unique_graphs"] == 1
    assert [code.count(".run(") for code in codes] == [1], bridge.report()
