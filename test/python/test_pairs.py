"""Rows whose lanes step by two: one access of twice the width, where every address of it is inside the buffer."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import sympy
import torch
from emitted import run_emitted
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

from bridge.backend import bridge as bridge_backend
from bridge.pairs import WIDE_LANE, LaneVariable, find_pair

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from patterns import norm_interleaved_rope, rms_norm

ROW, LANE, HEAD = sympy.symbols("x0 r0_1 r0_2", integer=True, nonnegative=True)
ONE_LOOP = [LaneVariable(LANE, 1, 64, 64)]
TWO_LOOPS = [LaneVariable(LANE, 1, 8, 64), LaneVariable(HEAD, 8, 8, 64)]


def is_even(expression) -> bool:
    return all(coefficient % 2 == 0 for coefficient in sympy.expand(expression).as_coefficients_dict().values())


@pytest.mark.parametrize(
    "address, variables, wide, half",
    [
        (2 * LANE, ONE_LOOP, WIDE_LANE, 0),
        (2 * LANE + 1 + 128 * ROW, ONE_LOOP, WIDE_LANE + 128 * ROW, 1),
        (2 * LANE + 7, ONE_LOOP, WIDE_LANE + 6, 1),
        (2 * LANE + 16 * HEAD, TWO_LOOPS, ModularIndexing(WIDE_LANE, 1, 16) + 16 * FloorDiv(WIDE_LANE, 16), 0),
        (2 * LANE + 10 * HEAD + 1, TWO_LOOPS, ModularIndexing(WIDE_LANE, 1, 16) + 10 * FloorDiv(WIDE_LANE, 16), 1),
        (LANE + 64 * ROW, ONE_LOOP, None, None),
        (4 * LANE, ONE_LOOP, None, None),
        (2 * LANE + 65 * ROW, ONE_LOOP, None, None),
        (2 * HEAD, TWO_LOOPS, None, None),
        (2 * ROW, ONE_LOOP, None, None),
    ],
)
def test_find_pair(address, variables, wide, half):
    pair = find_pair(address, variables, is_even)
    assert (pair and pair.address, pair and pair.half) == (wide, half)


@pytest.mark.parametrize("variables, extents", [(ONE_LOOP, {LANE: 64}), (TWO_LOOPS, {LANE: 8, HEAD: 8})])
def test_both_halves_are_the_addresses_of_their_lanes(variables, extents):
    address = 2 * LANE + 1 + (20 * HEAD if HEAD in extents else 0)
    pair = find_pair(address, variables, is_even)
    for lane in range(64):
        values = {v.symbol: lane // v.divisor % v.length for v in variables}
        assert pair.address.subs(WIDE_LANE, 2 * lane + pair.half) == address.subs(values)


def product(x, weight):
    normed = rms_norm(x, weight)
    return normed[..., 0::2] * normed[..., 1::2]


def one_half(x, weight):
    return rms_norm(x, weight)[..., 1::2] + 1


def nibbles(x):
    """Two values of four bits in a byte, with a scale for the row."""
    scale = x.float().abs().amax(-1, keepdim=True) / 7
    rounded = (x / scale).round().to(torch.int8)
    return (rounded[..., 1::2] << 4) | (rounded[..., 0::2] & 15), scale


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    "function, inputs, loads, stores",
    [
        (product, [normal(5, 64), normal(64)], 2, 0),
        (product, [normal(5, 96), normal(96)], 2, 0),
        (product, [normal(3, 1024), normal(1024)], 2, 0),
        (one_half, [normal(5, 64), normal(64)], 2, 0),
        (nibbles, [normal(6, 48).bfloat16()], 1, 0),
        (norm_interleaved_rope, [normal(3, 4, 24), normal(24), normal(3, 1, 12), normal(3, 1, 12)], 2, 1),
        # Rows that start at odd elements, and a buffer whose last element has no neighbour.
        (product, [normal(5, 97)[:, :96], normal(96)], 1, 0),
        (product, [normal(5 * 128)[:-33].as_strided((5, 95), (128, 1))[:, :94], normal(94)], 2, 0),
        (one_half, [normal(5, 64)[:, 1:], normal(63)], 0, 0),
    ],
    ids=["64", "masked", "block of one row", "one half", "nibbles", "rope", "odd rows", "padded rows", "odd length"],
)
def test_wide_accesses(function, inputs, loads, stores):
    """float64 eager agrees; so many loads and stores are of pairs."""
    got, (code,) = run_emitted(function, inputs, bridge_backend)
    expected = function(*[t.double() if t.dtype == torch.float32 else t for t in inputs])
    for one, other in zip(*[r if isinstance(r, tuple) else (r,) for r in (got, expected)], strict=True):
        torch.testing.assert_close(one.double(), other.double(), rtol=1e-5, atol=1e-5)
    assert (code.count("tl.split("), code.count("tl.join(")) == (loads, stores)


def test_only_fused_kernels_have_them():
    """What Bridge does not fuse stays Inductor's, whose rows it may keep in registers."""

    def alone(x):
        return x[:, 0::2] * x[:, 1::2].sum(-1, keepdim=True)

    _, (code,) = run_emitted(alone, [normal(4, 128)], bridge_backend)
    assert "tl.split(" not in code
