"""Test which kernels get other loops alone only after sums of columns."""

from __future__ import annotations

import functools

import torch
from emitted import run_emitted
from schedules import look_at_gpu_schedule

import bridge
from bridge import offline
from bridge.backend import bridge as backend
from bridge.scheduling.later_loops import may_have_sums


def gradient_of_normed_heads(g, x, w, cos, sin):
    half = x.shape[-1] // 2
    one, other = g[..., :half], g[..., half:]
    turned = torch.cat([one * cos + other * sin, other * cos - one * sin], -1)
    scaled = turned * w
    return scaled - x * (scaled * x).sum(-1, keepdim=True), (turned * x).sum((0, 1))


def _inputs(batch, tokens, heads, width, make):
    angles = [make(tokens, 1, width // 2) for _ in range(2)]
    return [make(batch, tokens, heads, width), make(batch, tokens, heads, width), make(heads, width), *angles]


def with_product(*args):
    return *gradient_of_normed_heads(*args[1:]), args[0] @ args[0]


def test_loops_over_halves_keep_no_sums_of_columns_out_of_their_kernel():
    """Check that loops over halves, for the rotation, do not keep sums of columns out of their kernel.

    Such loops were given first: the gradient of each head's weight read all of its rows again.
    """
    inputs = _inputs(4, 1024, 24, 128, functools.partial(torch.empty, dtype=torch.bfloat16))
    offline.compile_for_gpu(with_product, [torch.empty(8192, 8192), *inputs], compile_fx=backend)
    report = bridge.report()
    (group,) = report.groups
    assert (group.kernels_before, group.kernels_after) == (3, 2), report
    assert group.bytes_after < 0.7 * group.bytes_before and report.peak_after <= report.peak_before


def test_a_kernel_that_no_sums_have_joined_gets_its_other_loops(monkeypatch):
    monkeypatch.setattr("bridge.scheduling.fuse.add_up_columns", lambda schedule, logs, terms: schedule)
    inputs = _inputs(4, 1024, 24, 128, functools.partial(torch.empty, dtype=torch.bfloat16))
    offline.compile_for_gpu(gradient_of_normed_heads, inputs, compile_fx=backend)
    (group,) = bridge.report().groups
    assert group.kernels_after == group.kernels_before and group.done.restructured == 1


def test_rows_with_the_sums_of_their_columns_have_the_numbers_of_eager():
    inputs = _inputs(2, 160, 4, 16, torch.randn)
    ours = functools.partial(backend, options={"strict": True, "force_fusion": True})
    found, _ = run_emitted(gradient_of_normed_heads, inputs, ours)
    assert bridge.report().kernels_after < bridge.report().kernels_before
    expected = gradient_of_normed_heads(*(t.double() for t in inputs))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-4)


def test_which_kernels_wait():
    """Check which kernels wait for sums: not for those of rows, nor of a kernel that shares nothing with them."""
    seen = []

    def look(schedule):
        seen.append([may_have_sums(schedule, kernel) for kernel in schedule])

    def of_rows(x, y):
        return x.flip(0) * 2, y.sum(-1)

    look_at_gpu_schedule(of_rows, [torch.empty(4096, 1024), torch.empty(8192, 512)], look)
    assert len(seen[0]) == 2 and not any(seen[0])

    def of_columns(x, y):
        return x.flip(0) * 2, x.sum(0)

    look_at_gpu_schedule(of_columns, [torch.empty(4096, 1024), torch.empty(8192, 512)], look)
    assert seen[1][0]
