"""Test that lanes load nothing twice: of pairs the other element, and under two masks the same one."""

from __future__ import annotations

import re
from functools import partial

import pytest
import torch
from emitted import run_emitted
from programs import wide
from rechecked import forced

from bridge.lowering.triton.reused_loads import _literal


def sample(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape))).clamp(-2, 2)


def normed(x, weight):
    return wide(x) * torch.rsqrt(wide(x).square().mean(-1, keepdim=True) + 1e-6) * wide(weight)


def turned(x, cos, sin):
    """Rotate neighbours (RoPE) as diffusers does for Flux."""
    first, second = x.unflatten(-1, (-1, 2)).unbind(-1)
    return x * wide(cos) + torch.stack([-second, first], -1).flatten(-2) * wide(sin)


def turned_integers(x, cos, sin):
    return turned((x * 8).to(torch.int32), cos, sin)


def with_zeros(x, cos, sin):
    """Rotate with a zero in every other lane, instead of the neighbour's element."""
    second = x.unflatten(-1, (-1, 2))[..., 1]
    return x * wide(cos) + torch.stack([second, torch.zeros_like(second)], -1).flatten(-2) * wide(sin)


def of_two_streams(turn, x, other, weight, of_other, cos, sin):
    """Concatenate the normed tokens of a text and of an image, and turn them."""
    return turn(torch.cat([normed(other, of_other), normed(x, weight)], 1), cos, sin)


def streams(batch, tokens, others, width, dtype):
    tables = (sample(1, tokens + others, width) + n for n in (0, 1))
    given = sample(batch, tokens, width), sample(batch, others, width) * 2, sample(width), sample(width) + 1, *tables
    return [tensor.to(dtype) for tensor in given]


def run(function, given):
    outputs, codes = run_emitted(function, list(given), forced, False)
    expected = function(*(tensor.double() for tensor in given))
    for got, want in zip(*(v if isinstance(v, tuple) else (v,) for v in (outputs, expected)), strict=True):
        torch.testing.assert_close(got.double(), want, rtol=2e-5, atol=2e-5)
    return "\n".join(codes)


def every_other(code):
    """Return the loads whose lanes step by two."""
    return [line for line in code.splitlines() if re.search(r"tl\.load\(.*2\*r0_", line)]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("shape", [(2, 3, 2, 16), (1, 5, 3, 12), (3, 1, 1, 66)], ids=str)
@pytest.mark.parametrize("turn", [turned, turned_integers, with_zeros], ids=lambda function: function.__name__)
def test_the_other_element_of_a_pair_is_not_loaded_again(turn, shape, dtype):
    """Check that the other element of a pair is not loaded again.

    Flux: 7 kernels became 2, which took 118 us and not 60, as each lane loaded three elements for one.
    """
    code = run(partial(of_two_streams, turn), streams(*shape, dtype))
    assert every_other(code) == [] and "tl.split(" in code


def test_rows_of_odd_length_have_no_pairs():
    def shifted(x, cos, sin):
        return x * cos + torch.cat([x[..., 1:], x[..., :1]], -1) * sin

    assert "tl.split(" not in run(partial(of_two_streams, shifted), streams(2, 3, 2, 15, torch.float32))


def padded_windows(x, places, table):
    """Return the softmax of windows with a bias of their places, padded to whole sectors for a product (Swin)."""
    tokens = places.shape[0]
    bias = table[places.flatten()].view(tokens, tokens, -1).permute(2, 0, 1).contiguous()
    scores = wide(x[..., :tokens, :tokens] + bias)
    return torch.nn.functional.pad(scores.softmax(-1).to(x.dtype), (0, 7, 0, 7))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_what_is_loaded_under_a_mask_again_is_loaded_and_reduced_once(dtype):
    """Check that two results of one softmax are of one: it took 100 us for 87, as all was computed twice."""
    generator = torch.Generator().manual_seed(0)
    places = torch.randint(-50, 50, (9, 9), generator=generator)
    given = [sample(6, 4, 16, 16).to(dtype), places, sample(50, 4).to(dtype)]
    got, (code,) = run_emitted(padded_windows, given, forced, False)
    loads = re.findall(r"tl\.load\(.*?in_ptr(\d)", code)
    assert sorted(loads) == ["0", "1", "2"] and code.count("max2(") == 1 and code.count("tl.sum(") == 1
    expected = padded_windows(given[0].double(), places, given[2].double())
    rounding = {"rtol": 1e-2, "atol": 1e-2} if dtype == torch.bfloat16 else {"rtol": 2e-5, "atol": 2e-5}
    torch.testing.assert_close(got.double(), expected, **rounding)


def test_what_a_masked_load_has_elsewhere_is_a_number_of_triton():
    assert [_literal(number, torch.float32) for number in (0, False, 0.5)] == ["0", "False", "0.5"]
    assert [_literal(0.0, dtype) for dtype in (torch.int64, torch.uint8, torch.bool)] == ["0", "0", "False"]
    assert _literal(float("-inf"), torch.bfloat16) == 'float("-inf")'
