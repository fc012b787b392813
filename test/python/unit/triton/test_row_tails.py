"""Test rows with something after them in memory that all their lanes share: one store of both."""

from __future__ import annotations

import re

import pytest
import torch
import torch.nn.functional as F
from emitted import run_emitted

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.inductor.compiling import torch_release


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def zeros_after(x):
    return F.pad(torch.softmax(x.float(), -1).to(x.dtype), (0, 7))


def ones_after_and_rows(x):
    y = torch.softmax(x.float(), -1)
    return F.pad(y, (0, 3), value=1.0), y.sum(-1), y.amax(-1)


def largest_after(x):
    """Store the largest number of a row after it; it is loaded under the guard of the row's lanes."""
    largest = x.amax(-1, keepdim=True)
    return torch.cat([x - largest, largest.expand(*x.shape[:-1], 5)], -1)


def zeros_before(x):
    return F.pad(torch.softmax(x.float(), -1), (4, 0))


def zeros_around(x):
    return F.pad(torch.softmax(x.float(), -1), (1, 5))


def other_lanes_after(x):
    """Store different numbers after a row."""
    y = torch.softmax(x.float(), -1)
    return torch.cat([y, 1 - y[..., :5]], -1)


def no_room(x):
    """Pad a row of 64 lanes, which has no lanes for the padding."""
    return F.pad(torch.softmax(x.float(), -1), (0, 8))


@pytest.mark.skipif(torch_release() < (2, 13), reason="a padding is one loop over the padded row there")
@pytest.mark.parametrize(
    "function, x, joined",
    [
        (zeros_after, normal(5, 49), 1),
        (zeros_after, normal(3, 4, 41).bfloat16(), 1),
        (zeros_after, normal(2, 25).half(), 1),
        (zeros_after, normal(6, 40)[:, ::2], 1),
        (ones_after_and_rows, normal(7, 29), 1),
        (largest_after, normal(5, 40), 0),
        (zeros_before, normal(5, 20), 0),
        (zeros_around, normal(5, 42), 0),
        (other_lanes_after, normal(5, 20), 0),
        (no_room, normal(5, 64), 0),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_follows_a_row_is_stored_with_it(function, x, joined):
    """Check that what follows a row is stored with it: results, and how many stores have two parts.

    Triton compiles each kernel.
    """
    got, (code,) = run_emitted(function, [x], bridge_backend)
    got, expected = (r if isinstance(r, tuple) else (r,) for r in (got, function(x.double())))
    tolerance = 1e-2 if x.dtype == torch.bfloat16 else 2e-3 if x.dtype == torch.half else 1e-5
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one.double(), other.double(), rtol=tolerance, atol=tolerance)
    for kernel in offline.parse_wrapper(code).kernels:
        offline.compile_kernel(kernel, config={})
    assert len(re.findall(r"tl\.store\(.*tl\.where\(", code)) == joined
    assert bridge.report().fused
    if joined:
        assert len(re.findall(r"tl\.store\(", code)) == len(got)
