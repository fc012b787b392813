"""Test how many elements side by side Triton is told that loads have, where they are not aligned alike."""

from __future__ import annotations

import re

import pytest
import torch
import torch.nn.functional as F
from emitted import run_emitted
from rechecked import forced

from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.lowering.triton.access_widths import Access, _replaced, elements_of_thread, leaves_warps_idle

BFLOAT16, ODD_BFLOAT16, FLOAT32, FLAG = Access(2, 8), Access(2, 2), Access(4, 4), Access(1, 16)


@pytest.mark.parametrize(
    ("accesses", "elements"),
    [
        ([BFLOAT16], 8),
        ([BFLOAT16, BFLOAT16], 8),
        ([BFLOAT16, ODD_BFLOAT16], 2),
        ([BFLOAT16, FLOAT32], 4),
        ([FLAG, FLOAT32], 4),
        ([FLAG, BFLOAT16], 8),
        ([BFLOAT16, BFLOAT16, BFLOAT16, FLOAT32], 8),  # with 4 all together take 1.4 times less
        ([FLAG, FLAG, Access(8, 2)], 4),  # two flags are less than 4 bytes, the least that a copy ahead has
        ([BFLOAT16, Access(2, 1)], 2),
        ([Access(4, 1), FLOAT32], 1),
    ],
)
def test_elements_of_a_thread(accesses, elements):
    assert elements_of_thread(accesses) == elements
    assert elements_of_thread(accesses[::-1]) == elements


@pytest.mark.parametrize(
    ("elements", "length", "warps", "idle"),
    [
        (2, 130, 4, True),
        (8, 130, 4, False),  # a row is in one warp
        (2, 130, 1, False),
        (2, 197, 4, False),
        (2, 266, 4, False),  # each warp has some of the first 256 lanes
        (2, 266, 16, True),
        (4, 1030, 8, False),
        (4, 1030, 16, True),
    ],
)
def test_warps_without_elements(elements, length, warps, idle):
    assert leaves_warps_idle(elements, length, warps) is idle


@pytest.mark.parametrize("line", ["tmp0 = tl.load(in_ptr0 + (x), None)", "tmp0 = tl.load(in_ptr1 + (x), None)"])
def test_lines_that_are_written_when_the_kernel_ends_change_too(line):
    class Later:
        def __init__(self, line):
            self.line = line

    changed = line.replace("in_ptr0 + (x)", "new")
    assert _replaced(line, "in_ptr0 + (x)", "new") == changed
    assert _replaced(Later(line), "in_ptr0 + (x)", "new").line == changed


def scaled_norm(x, y):
    """Normalise rows, and scale each by the mean square of a shorter one: one kernel of two."""
    return F.layer_norm(x.float(), x.shape[-1:]) * y.float().square().mean(-1, keepdim=True)


def two_scaled_norms(x, y, z):
    return scaled_norm(x, y), scaled_norm(z, y[: len(z)])


def assert_scaled_norm(got, x, y):
    expected = F.layer_norm(x.double(), x.shape[-1:]) * y.double().square().mean(-1, keepdim=True)
    torch.testing.assert_close(got.double(), expected, rtol=1e-5, atol=1e-5)


def sample(*shape, dtype=torch.bfloat16):
    return torch.randn(shape, generator=torch.Generator().manual_seed(shape[-1])).to(dtype)


def limits(code):
    return re.findall(r"max_contiguous\((\w+) \+ .*?, \[((?:1, )*)(\d+)\]\)", code)


@pytest.mark.parametrize(
    ("length", "dtype", "limit"),
    [(98, torch.bfloat16, "2"), (98, torch.float32, "2"), (99, torch.float32, "1"), (96, torch.bfloat16, None)],
)
def test_loads_of_rows_that_begin_anywhere(length, dtype, limit):
    given = [sample(6, length, dtype=dtype), sample(6, 32, dtype=dtype)]
    got, codes = run_emitted(scaled_norm, given, forced)
    (code,) = codes
    assert [elements for _, _, elements in limits(code)] == ([limit] if limit else [])
    assert_scaled_norm(got, *given)


def test_views_that_begin_anywhere():
    """Check views that begin anywhere: rows are aligned, and the view begins at the third element of the first."""
    given = [sample(6, 72)[:, 3:67], sample(6, 32)]
    got, _ = run_emitted(scaled_norm, given, forced)
    assert_scaled_norm(got, *given)


def test_inductors_own_kernels_stay():
    given = [sample(2048, 1026), sample(2048, 512)]
    assert not limits(offline.compile_for_gpu(scaled_norm, given).code)
    ours = offline.compile_for_gpu(scaled_norm, given, compile_fx=bridge_backend)
    assert len(ours.kernels) == 1
    assert len(limits(ours.code)) == 1


def test_short_rows_in_a_launch_with_others():
    """Check that short rows in a launch with others expect 16 warps, as the number is not known.

    A row of 130 elements alone would be in four, two of them idle.
    """
    given = [sample(65536, 130), sample(65536, 64), sample(8192, 130)]
    ours = offline.compile_for_gpu(two_scaled_norms, given, compile_fx=bridge_backend)
    alone = offline.compile_for_gpu(scaled_norm, given[:2], compile_fx=bridge_backend)
    assert len(ours.launches) == 1
    assert len(limits(alone.code)) == 1
    assert not limits(ours.code)


def nearest(x, y):
    """Average the least distances of points, as the Chamfer distance does: its gradient has flags beside numbers."""
    apart = x.square().sum(-1)[:, :, None] + y.square().sum(-1)[:, None] - 2 * x @ y.transpose(1, 2)
    return apart.amin(2).mean() + apart.amin(1).mean()


def test_flags_beside_numbers_in_a_kernel_of_rows_and_columns():
    """Check flags beside numbers in a kernel of rows and columns.

    Each row of 2048 went through shared memory several times, and took 210 us, not 88, on an H200.
    """
    given = [sample(8, 2048, 3, dtype=torch.float32) for _ in range(2)]
    code = offline.compile_for_gpu(nearest, given, compile_fx=bridge_backend, backward=True).code
    assert {(ones, elements) for _, ones, elements in limits(code)} == {("1, ", "4")}
