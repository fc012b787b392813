"""Test that operations that are no loops of one kernel stay where they are, and what is around them still fuses."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from functions import gate

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend

ROWS, WIDTH = 64, 512


def attention(x):
    heads = x.view(1, 4, ROWS, -1)
    return F.scaled_dot_product_attention(heads, heads, heads).reshape(ROWS, -1)


def scatter_add(x):
    index = (torch.arange(x.shape[1], device=x.device) * 7 % x.shape[1]).expand(x.shape[0], -1)
    return torch.zeros_like(x).scatter_add(1, index, x)


BETWEEN = {
    "matmul": lambda x: x @ x.t() @ x,
    "attention": attention,
    "cumsum": lambda x: torch.cumsum(x, 0),
    "sort": lambda x: torch.sort(x, -1)[0],
    "scatter_add": scatter_add,
    "index_select": lambda x: x[torch.arange(ROWS, device=x.device).flip(0)],
    "dropout": lambda x: F.dropout(x, 0.1, training=True),
}


def generate(fn, backend=None):
    return offline.compile_for_gpu(fn, [torch.randn(ROWS, WIDTH)], compile_fx=backend, dynamic=False)


def atomics_and_scans(result):
    """Count the atomic additions and scans in a wrapper's kernels: a fusion must neither double nor lose them."""
    source = "\n".join(kernel.source for kernel in result.kernels)
    return Counter({word: source.count(word) for word in ("tl.atomic_add(", "associative_scan(")})


#: Inductor has the neighbours in its kernel, which stays whole.
HOLD_THEIR_NEIGHBOURS = {"sort"}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", BETWEEN)
def test_neighbours_fuse(name):
    def fn(x):
        return gate(BETWEEN[name](gate(x)))

    theirs, ours = generate(fn), generate(fn, bridge_backend)
    assert ours.extern_calls == theirs.extern_calls
    assert atomics_and_scans(ours) == atomics_and_scans(theirs)
    if name in HOLD_THEIR_NEIGHBOURS:
        assert [k.source for k in ours.kernels] == [k.source for k in theirs.kernels]
    else:
        assert ours.n_kernels < theirs.n_kernels
        assert any(group.fused for group in bridge.report().groups)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", BETWEEN)
def test_neighbours_of_one_input(name):
    def fn(x):
        return gate(x), BETWEEN[name](x)

    theirs, ours = generate(fn), generate(fn, bridge_backend)
    assert ours.extern_calls == theirs.extern_calls
    assert atomics_and_scans(ours) == atomics_and_scans(theirs)
    if name in HOLD_THEIR_NEIGHBOURS | {"scatter_add"}:
        assert [k.source for k in ours.kernels] == [k.source for k in theirs.kernels]
    else:
        assert ours.n_kernels < theirs.n_kernels
