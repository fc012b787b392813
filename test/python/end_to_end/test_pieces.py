"""Test what one iteration reads of several that another node reduces.

Heads, streams and pairs in one kernel, in float64.
"""

from __future__ import annotations

import pytest
import torch
from programs import wide
from rechecked import check
from torch.nn import functional

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend


def softmax_of_pairs(x):
    """Compute differential attention: pairs of heads are adjacent, with the tokens between the pair and the row."""
    first, second = wide(x).softmax(-1).unflatten(1, (-1, 2)).unbind(2)
    return first - 0.3 * second


def softmax_of_halves(x):
    """Combine each head of the first half with the one of the second half."""
    first, second = wide(x).softmax(-1).chunk(2, 1)
    return first - 0.3 * second


def sum_of_norms(x):
    """Add up the norms of several streams."""
    return functional.rms_norm(wide(x), x.shape[-1:]).sum(1)


def gated_norms(x):
    first, second = functional.layer_norm(wide(x), x.shape[-1:]).chunk(2, 1)
    return functional.silu(first) * second


def softmax_of_columns(x):
    """Combine two softmaxes whose reduced elements are not adjacent in memory."""
    first, second = wide(x).softmax(-2).unbind(-1)
    return first - 0.3 * second


def gate_of_normed_heads(x):
    """Normalise the heads of a row, then gate those of the first half with those of the second."""
    heads = functional.rms_norm(wide(x).unflatten(-1, (-1, 8)), (8,))
    gate, up = heads.flatten(-2).chunk(2, -1)
    return functional.silu(gate) * up


def four_parts_of_softmax(x):
    a, b, c, d = wide(x).unflatten(-1, (-1, 8)).softmax(-1).flatten(-2).chunk(4, -1)
    return a * b + c * d


def halves_of_blocks_with_their_scales(x):
    """Pack halves of a row as int4 is packed: an element, in its block's scale, with the one half a row away."""
    blocks = wide(x).unflatten(-1, (-1, 8))
    scale = blocks.abs().amax(-1, keepdim=True) / 7
    low, high = (blocks / scale).flatten(-2).chunk(2, -1)
    return low + 16 * high, scale.squeeze(-1)


def gate_of_normed_groups(x):
    """Gate images by normed groups of channels: the reduction has other loops than the gate."""
    first, second = functional.group_norm(wide(x), 4).chunk(2, 1)
    return first * torch.sigmoid(second)


def gate_of_normed_heads_and_their_row(x):
    """Gate normed heads and store the whole row too, so that the norm has a kernel that could be alone."""
    normed = functional.layer_norm(wide(x).unflatten(-1, (-1, 8)), (8,)).flatten(-2)
    gate, up = normed.chunk(2, -1)
    return functional.silu(gate) * up, normed + wide(x)


def gradient_of_a_mixture(x):
    """Compute the gradient of a softmax over experts: it reads what is reduced for all experts, and for its own."""
    h = wide(x)
    token, experts = h[:, 0], h[:, 1:]
    weights = experts[..., 0].softmax(-1)
    dots = (experts * token[:, None]).sum(-1)
    return weights[..., None] * token[:, None], weights * (dots - (weights * dots).sum(-1, keepdim=True))


def gradient_of_normed_weights(x):
    """Compute the gradient of a router that divides weights of experts by their sum; no lane waits for a reduction."""
    h = wide(x)
    token, experts = h[:, 0], h[:, 1:]
    weights = torch.sigmoid(experts[..., 1])
    total = weights.sum(-1, keepdim=True)
    dots = (experts * torch.tanh(token)[:, None]).sum(-1) * experts[..., 2]
    return experts * token[:, None], dots / total - (dots * weights).sum(-1, keepdim=True) / total.square()


def gradient_of_modulated_levels(*inputs):
    """Compute the gradient of levels that are weighted, added up and multiplied, as those of FocalNet."""
    q, grad, levels, weights = map(wide, inputs)
    of_sum = (grad * q)[:, None]
    return grad * (levels * weights[..., None]).sum(1), of_sum * weights[..., None], (of_sum * levels).sum(-1)


def gradient_of_mixed_experts(x):
    """Compute the gradients of experts and of their softmax, and of what their sum is multiplied with."""
    token, grad, experts = wide(x[:, 0]), wide(x[:, 1]), wide(x[:, 2:])
    weights = experts[..., 0].softmax(-1)
    of_sum = (grad * token)[:, None]
    dots = (of_sum * experts).sum(-1)
    of_router = weights * (dots - (weights * dots).sum(-1, keepdim=True))
    return grad * (experts * weights[..., None]).sum(1), of_sum * weights[..., None], of_router


CASES = [
    (gradient_of_mixed_experts, (6, 6, 32)),
    (gradient_of_mixed_experts, (4, 4, 40)),
    (gradient_of_a_mixture, (6, 5, 32)),
    (gradient_of_a_mixture, (5, 4, 40)),
    (gradient_of_normed_weights, (6, 5, 32)),
    (gradient_of_normed_weights, (3, 4, 1024)),
    (gate_of_normed_heads_and_their_row, (6, 64)),
    (gate_of_normed_heads, (6, 64)),
    (gate_of_normed_heads, (2, 3, 48)),
    (four_parts_of_softmax, (6, 64)),
    (halves_of_blocks_with_their_scales, (6, 64)),
    (gate_of_normed_groups, (2, 16, 4, 6)),
    (softmax_of_pairs, (2, 4, 6, 32)),
    (softmax_of_halves, (2, 6, 5, 40)),
    (sum_of_norms, (6, 4, 32)),
    (sum_of_norms, (5, 3, 6, 40)),
    (gated_norms, (2, 4, 6, 32)),
    (softmax_of_columns, (6, 32, 2)),
]


def given(shape, dtype):
    return [torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("function", "shape"), CASES, ids=lambda part: getattr(part, "__name__", str(part)))
def test_what_one_iteration_reads_is_reduced_in_it(function, shape, dtype):
    check(function, given(shape, dtype), kernels=1)


def shapes_of_levels(rows, levels, columns):
    return (rows, columns), (rows, columns), (rows, levels, columns), (rows, levels)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("levels", "columns"), [(3, 32), (4, 40)])
def test_a_row_that_several_are_multiplied_with_is_in_their_kernel(levels, columns, dtype):
    inputs = [one for shape in shapes_of_levels(6, levels, columns) for one in given(shape, dtype)]
    check(gradient_of_modulated_levels, inputs, kernels=1)


def test_a_row_that_several_are_multiplied_with_was_read_in_two_kernels():
    """Check that so many rows are in one kernel that two would not share a launch."""
    inputs = [torch.empty(shape, dtype=torch.bfloat16) for shape in shapes_of_levels(25088, 3, 192)]
    found = offline.compile_for_gpu(gradient_of_modulated_levels, inputs, compile_fx=bridge_backend)
    assert found.n_kernels == 1


@pytest.mark.parametrize("function", [softmax_of_pairs, softmax_of_halves, gated_norms, sum_of_norms])
def test_results_that_are_a_symbolic_number_of_tokens_apart_are_reduced_in_one_iteration(function):
    """Check that one iteration reduces results that are a symbolic number of tokens apart.

    The step from one head's results to the next's had to be a number.
    """
    (x,) = given((2, 4, 5, 16), torch.float32)
    torch._dynamo.mark_dynamic(x, 2)
    check(function, [x], kernels=1, dynamic=None)


def kernels(function, shape):
    x = torch.empty(shape, dtype=torch.bfloat16)
    return offline.compile_for_gpu(function, [x], compile_fx=bridge_backend).n_kernels


def test_the_report_says_nothing_of_what_was_tried_before():
    assert kernels(softmax_of_pairs, (2, 32, 1024, 1024)) == 1
    (group,) = bridge.report().groups
    assert (group.reason, group.apart, group.kernels_after) == (None, [], 1)


@pytest.mark.parametrize("streams", [2, 9])
def test_more_than_eight_results_are_not_one_iteration(streams):
    """Check that more than eight results are not reduced in one iteration, as a kernel repeats its loops for each."""
    assert kernels(sum_of_norms, (4096, streams, 512)) == (1 if streams <= 8 else 2)


def test_results_that_no_lane_waits_for_stay_in_registers_beside_what_one_lane_stores():
    """Check that results which no lane waits for stay in registers beside what one lane stores.

    A kernel that reads a row in one loop had no lane to store what is computed from the row's sums.
    """
    assert kernels(gradient_of_normed_weights, (4096, 4, 1024)) == 1


@pytest.mark.parametrize(
    ("function", "shape", "loads"),
    [(gradient_of_a_mixture, (8192, 5, 32), 7), (gradient_of_normed_weights, (8192, 4, 1024), 9)],
)
def test_an_element_that_two_nodes_index_by_other_loops_is_loaded_once(function, shape, loads):
    """Check that an element that two nodes index in different loops is loaded once.

    One had a loop of all lanes, the other one of tokens and one of lanes: two forms of an index, and two loads.
    """
    x = torch.empty(shape, dtype=torch.bfloat16)
    (kernel,) = offline.compile_for_gpu(function, [x], compile_fx=bridge_backend).kernels
    assert kernel.source.count("tl.load(") == loads


def test_rows_that_do_not_fit_in_registers_stay_apart():
    """Check that two rows that do not fit in registers stay apart: fused, each would be read again."""
    assert kernels(softmax_of_pairs, (1, 2, 128, 65536)) > 1
