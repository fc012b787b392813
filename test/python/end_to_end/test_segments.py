"""Test segments of a row, then the row.

One kernel, whose lanes hold what their segment reduced; numbers against float64.
"""

from __future__ import annotations

import pytest
import torch
from emitted import NO_STAGES, run_emitted
from programs import wide
from rechecked import check, rechecked


def scales_of_scales(x):
    """Return scales of segments as shares of the row's largest one."""
    scale = wide(x).abs().amax(-1, keepdim=True)
    largest = scale.amax(1, keepdim=True)
    return wide(x) / (scale + largest), scale / largest, largest


def gated_by_norms(x):
    """Weigh segments by a softmax of their mean squares."""
    return wide(x) * wide(x).pow(2).mean(-1).softmax(-1)[..., None]


def norm_of_norms(x):
    """Normalise each segment, and then the row of all of them."""
    y = wide(x) * torch.rsqrt(wide(x).pow(2).mean(-1, keepdim=True) + 1e-6)
    return y * torch.rsqrt((y + 1).pow(2).mean((1, 2), keepdim=True))


def relative_to_moments(x):
    """Scale by the moments of the segments' sums: each sum must be counted once, though several lanes hold it."""
    total = wide(x).sum(-1)
    variance, mean = torch.var_mean(total, -1, keepdim=True)
    return wide(x) * ((total - mean) * torch.rsqrt(variance + 1))[..., None]


def product_of_means(x):
    mean = (wide(x) / 4).mean(-1) + 1
    return wide(x) + mean.prod(-1)[:, None, None]


def number_of_positive_segments(x):
    """Count positive segments, in integers, and ask whether there is any, in truth values."""
    positive = wide(x).sum(-1) > 0
    return wide(x) * positive.sum(-1)[:, None, None] + positive.any(-1)[:, None, None], positive


def relative_to_the_first(x):
    """Divide by the sum of the first segment, which all lanes need."""
    total = wide(x).abs().sum(-1, keepdim=True)
    return wide(x) / total[:, :1], (total[:, -1] / total[:, 0])[:, 0]


def segments_of_segments(x):
    """Reduce two levels of segments before the row."""
    y = wide(x).unflatten(-1, (-1, 4))
    inner = y.sum(-1)
    middle = inner.pow(2).sum(-1)
    return y - inner[..., None] * middle[..., None, None] / middle.sum(-1)[:, None, None, None]


FUNCTIONS = [scales_of_scales, gated_by_norms, norm_of_norms, relative_to_moments, product_of_means]
FUNCTIONS += [number_of_positive_segments, relative_to_the_first]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(6, 8, 16), (5, 9, 32)], ids=str)
@pytest.mark.parametrize("function", [*FUNCTIONS, segments_of_segments], ids=lambda function: function.__name__)
def test_segments_then_the_row_are_one_kernel(function, shape, dtype):
    """Check that segments and then the row are one kernel; rows of 9 segments have idle lanes, too."""
    check(function, [torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)], kernels=1)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(6, 2, 32), (5, 7, 16)], ids=str)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_fewer_than_eight_segments_are_broadcast(function, shape, dtype):
    """Check that fewer than eight segments, which Inductor adds one by one in each lane, are one kernel."""
    check(function, [torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)], kernels=1)


def sums_of_equal_elements(x, row):
    """Add up segments whose elements all equal the row's sum, and segments that are all the same row."""
    total = wide(x).sigmoid().sum(-1, keepdim=True)
    segments = [total[..., None] * s for s in (wide(x).new_ones(4, 16), wide(row)[:, None].expand(-1, 4, 16))]
    return *(s.sum(-1) for s in segments), wide(x).softmax(-1) * total


def test_each_segment_reduces_its_own_elements_where_all_segments_have_the_same():
    check(sums_of_equal_elements, [torch.randn(3, 64), torch.randn(3, 16)], kernels=1)


def sum_of_equal_elements(x):
    return ((torch.nn.functional.softplus(x) + 1).log().sum() * x.new_ones(2, 15)).sum(1)


def test_a_reduction_of_equal_elements_is_in_no_kernel_that_reduces_nothing():
    check(sum_of_equal_elements, [torch.randn(4)], kernels=2)


def groups_relative_to_the_peak(x):
    """Normalise four groups of a row, and divide by its largest element, which Inductor finds in parts."""
    y = wide(x).unflatten(-1, (4, -1))
    y = (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).flatten(1)
    return y / y.abs().amax(-1, keepdim=True)


def test_segments_may_be_parts_of_longer_segments():
    check(groups_relative_to_the_peak, [torch.randn(16, 4096, generator=torch.Generator().manual_seed(0))], kernels=1)


@pytest.mark.parametrize("segments", [8, 4])
def test_an_infinite_segment_stays_what_it_is(segments):
    """Check that infinite and NaN segments keep their value: idle lanes are left out, and not multiplied by zero."""
    x = torch.randn(4, segments, 16, generator=torch.Generator().manual_seed(0))
    x[0, 3, 5], x[1, 2, 0] = float("inf"), float("nan")
    outputs, _ = run_emitted(relative_to_moments, [x], rechecked, **NO_STAGES)
    torch.testing.assert_close(outputs, relative_to_moments(x), equal_nan=True)


@pytest.mark.parametrize("segments", [8, 3])
def test_the_number_of_rows_may_be_a_symbol(segments):
    x = torch.randn(6, segments, 16, generator=torch.Generator().manual_seed(0))
    torch._dynamo.mark_dynamic(x, 0)
    check(norm_of_norms, [x], kernels=1, dynamic=None)


def best_segment(x):
    """Return the number of the largest segment, which is not the number of a lane."""
    total = wide(x).sum(-1)
    return total, total.argmax(-1)


def best_of_two(x):
    """Return the number of the larger of two segments, which Inductor compares without numbers of lanes."""
    total = wide(x).sum(-1)
    return total, total.argmax(-1), wide(x) / wide(x).abs().sum(-1).flip(-1)[..., None]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32], ids=str)
def test_another_segment_out_of_two_is_broadcast(dtype):
    x = (4 * torch.randn(6, 2, 32, generator=torch.Generator().manual_seed(0))).to(dtype)
    check(best_of_two, [x], kernels=1)


def relative_to_the_others(x):
    """Divide each segment by the sum of the one at the opposite place."""
    total = wide(x).abs().sum(-1)
    return wide(x) / total.flip(-1)[..., None], total.sum(-1)


@pytest.mark.parametrize(
    ("function", "shape"),
    [(scales_of_scales, (6, 8, 24)), (best_segment, (6, 8, 16)), (relative_to_the_others, (6, 8, 16))],
    ids=["segments of no power of two", "argmax", "another segment"],
)
def test_what_a_lane_cannot_hold_stays_apart(function, shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    check(function, [x], kernels={scales_of_scales: 3, best_segment: 2, relative_to_the_others: 2}[function])
