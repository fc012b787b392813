"""Test a function with its backward, as `bridge explain` and `bridge time` call it."""

from __future__ import annotations

import pytest
import torch

from bridge.support.gradients import NoGradient, WithBackward, leaves, modules_of

BLOCK = torch.nn.Linear(3, 3)


def scaled(x, factor=2.0):
    return BLOCK(x) * factor


def test_all_inputs_with_a_fraction_want_gradients_where_none_does():
    x, indices = torch.ones(2), torch.zeros(2, dtype=torch.int64)
    assert [one.requires_grad for one in leaves([x, indices])] == [True, False]
    assert not x.requires_grad and leaves([3])[0] == 3


def test_only_those_do_that_did():
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    assert [one.requires_grad for one in leaves([x, [y]])[:1]] == [True]
    assert not leaves([x, [y]])[1][0].requires_grad


def test_what_was_said_of_sizes_is_said_of_the_leaves():
    """Check that leaves keep what was said of sizes: one marked dynamic was a number with the backward."""
    x = torch.ones(4, 3)
    torch._dynamo.mark_dynamic(x, 0)
    (leaf,) = leaves([x])
    assert leaf is not x and leaf._dynamo_dynamic_indices == x._dynamo_dynamic_indices == {0}


def test_results_come_with_gradients_of_inputs_and_parameters_the_same_each_time():
    step = WithBackward()(scaled, scaled)
    first, second = step(torch.ones(4, 3)), step(torch.ones(4, 3))
    assert [one.shape for one in first] == [(4, 3), (4, 3), (3, 3), (3,)]
    assert all(map(torch.equal, first, second))
    assert not any(one.requires_grad for one in first)


def test_another_precision_has_the_same_gradients_of_its_results():
    both = WithBackward()
    narrow = both(torch.exp, torch.exp)(torch.ones(8, dtype=torch.bfloat16))
    wide = both(torch.exp, torch.exp)(torch.ones(8, dtype=torch.float64))
    assert torch.allclose(narrow[1].double(), wide[1], rtol=1e-2)


def test_what_has_no_gradient_is_said():
    with pytest.raises(NoGradient, match="no result"):
        WithBackward()(torch.sign, lambda x: x.detach())(torch.ones(2))


def test_modules_are_found_behind_a_function_that_wraps_another():
    def wrapping(x):
        return scaled(x, factor=3.0)

    wrapping.__wrapped__ = scaled
    assert modules_of(wrapping) == [BLOCK] and modules_of(BLOCK) == [BLOCK]


def test_results_of_eight_bits_have_gradients():
    """Check what `bridge time` calls for a quantiser: "normal_kernel_cpu" not implemented for 'Float8_e4m3fn'."""

    def quantised(x):
        return (x * 2).to(torch.float8_e4m3fn)

    result, gradient = WithBackward()(quantised, quantised)(torch.ones(4))
    assert result.dtype is torch.float8_e4m3fn and gradient.dtype is torch.float32 and gradient.any()
