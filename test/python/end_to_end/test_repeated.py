"""Test that rows of heads that are normed and repeated for the heads that share them are one kernel, in any order."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from emitted import run_emitted

from bridge.backend import bridge as bridge_backend
from bridge.bench.corpus import numerics
from bridge.offline import parse_wrapper

WIDTH = 32


def heads(x, w):
    return F.rms_norm(x.view(*x.shape[:2], -1, WIDTH), (WIDTH,), w)


def each_twice_and_transposed(x, w):
    """Compute queries and keys of a gated delta rule: each head is repeated and transposed."""
    return heads(x, w).repeat_interleave(2, 2).transpose(1, 2).float()


def all_three_times(x, w):
    return heads(x, w).repeat(1, 1, 3, 1)


@pytest.mark.parametrize("function", [each_twice_and_transposed, all_three_times])
def test_one_kernel_with_the_norm(function):
    generator = torch.Generator().manual_seed(0)
    given = [torch.randn(shape, generator=generator).bfloat16() for shape in ((2, 64, 4 * WIDTH), (WIDTH,))]
    ours, codes = run_emitted(function, given, bridge_backend)
    assert len(parse_wrapper(codes[0]).launches) == 1
    (expected,) = numerics.in_double(function, given)
    torch.testing.assert_close(ours.double(), expected.double(), rtol=8e-3, atol=8e-3)


def test_all_copies_are_stored_of_rows_that_are_stored_themselves():
    """Check that all copies of rows are stored beside the rows themselves.

    Three of four were not: the mask of the rows' own store was used for those of the copies.
    """

    def function(x):
        rows = F.normalize(x.view(2, 8, 6, 4), dim=-1)
        return rows, rows.repeat(1, 1, 4, 1)

    x = torch.randn(2, 8, 24, generator=torch.Generator().manual_seed(0))
    ours, codes = run_emitted(function, [x], bridge_backend)
    assert len(parse_wrapper(codes[0]).launches) == 1
    torch.testing.assert_close(tuple(ours), function(x))
