"""Test that kernels of all shapes draw the same random number of a seed and an offset."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from emitted import emitted_for
from torch._inductor.codegen.triton import TritonKernelOverrides

from bridge.lowering.triton.random_numbers import drawing_alike
from bridge.support.fresh_code import fresh_entry


def test_the_code_is_that_of_kernels_of_two_dimensions():
    alike = drawing_alike(TritonKernelOverrides)
    assert alike is drawing_alike(TritonKernelOverrides)
    assert alike().rand("seed", "x0") == "tl.rand(seed, (x0).to(tl.uint32))"
    assert alike().randn("seed", "x0") == "tl.randn(seed, (x0).to(tl.uint32))"
    assert alike().exp is not None  # whatever else there is stays Inductor's


def dropped(x):
    return F.dropout(x, 0.5, training=True).relu() + torch.randn_like(x)


@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
def test_a_kernel_of_one_dimension_draws_as_one_of_two(training):
    """Check that a kernel of one dimension draws as one of two; from torch 2.13 on Inductor's does not.

    See pytorch#198333; a kernel that Bridge leaves alone draws in one way, too.
    """
    codes: list[str] = []
    torch._dynamo.reset()
    x = torch.zeros(64, 128, requires_grad=training)
    with emitted_for("sm_90", codes), torch.set_grad_enabled(training):
        compiled = torch.compile(fresh_entry(dropped), backend="bridge", options={"training": True}, dynamic=False)
        compiled(x)
    assert "tl.rand(" in codes[0] and "tl.randn(" in codes[0]
    assert not any(call in code for code in codes for call in ("rand4x(", "randn4x("))
