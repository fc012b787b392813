"""Kernels that Bridge does not fuse and that read their rows several times: which are kept in registers."""

from __future__ import annotations

import pytest
import torch
from emitted import run_emitted
from torch.nn import functional as F

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend


def rms_norm(x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def layer_norm(x):
    return F.layer_norm(x, x.shape[-1:])


def residual_norm(x):
    hidden = x + 1
    return hidden, rms_norm(hidden)


def softmax(x):
    return torch.softmax(x, -1)


def norm_and_rotate(x):
    """What olmo2 does with queries: the norm is over all heads, the rotation in each."""
    heads = rms_norm(x).unflatten(-1, (-1, 128))
    first, second = heads.chunk(2, -1)
    return heads + torch.cat([-second, first], -1)


READ_AGAIN = [rms_norm, layer_norm, residual_norm, softmax]


def generate(fn, *shape, dynamic=False, **options):
    def backend(gm, inputs):
        return bridge_backend(gm, inputs, options=options)

    x = torch.randn(shape)
    if dynamic:
        torch._dynamo.mark_dynamic(x, 0)
    return offline.compile_for_gpu(fn, [x], compile_fx=backend, dynamic=None if dynamic else False)


def is_persistent(result):
    (kernel,) = result.kernels
    return kernel.heuristic == "persistent_reduction"


def sources(result):
    return [kernel.source for kernel in result.kernels]


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("fn", READ_AGAIN)
def test_row_is_kept(fn, dynamic):
    assert is_persistent(generate(fn, 4096, 4096, dynamic=dynamic))
    assert any("registers" in choice for choice in bridge.report().choices)


def test_inductor_would_not():
    assert not is_persistent(offline.compile_for_gpu(rms_norm, [torch.randn(4096, 4096)]))


@pytest.mark.parametrize("options", [{"unfused_rows": False}, {"persistent": False}], ids=str)
def test_options_turn_it_off(options):
    theirs = offline.compile_for_gpu(rms_norm, [torch.randn(4096, 4096)])
    assert sources(generate(rms_norm, 4096, 4096, **options)) == sources(theirs)
    assert not bridge.report().choices


@pytest.mark.parametrize(
    ("fn", "shape"),
    [
        (lambda x: x.sum(-1), (4096, 4096)),
        (rms_norm, (4096, 32768)),
        (lambda x: x - x.mean(0), (4096, 4096)),
        (norm_and_rotate, (4096, 4096)),
    ],
    ids=["one pass", "too long", "not neighbours", "several subscripts"],
)
def test_loop_stays(fn, shape):
    theirs = offline.compile_for_gpu(fn, [torch.randn(shape)])
    assert sources(generate(fn, *shape)) == sources(theirs)


@pytest.mark.parametrize("fn", READ_AGAIN)
def test_numerics(fn):
    torch.manual_seed(0)
    x = torch.randn(3, 1536)
    ours, _ = run_emitted(fn, [x], bridge_backend)
    expected = fn(x.double())
    torch.testing.assert_close(ours, expected, check_dtype=False, rtol=1e-5, atol=1e-5)
