"""Test groups that are tried again without one of their kernels."""

from __future__ import annotations

import contextlib
import functools

import pytest
import torch
import torch.nn.functional as F
from emitted_claims import contradictions
from schedules import look_at_gpu_schedule

import bridge
from bridge import offline
from bridge.backend import bridge as backend
from bridge.options import Options
from bridge.reasons import Reason
from bridge.scheduling import fuse
from bridge.scheduling.commit import Commit
from bridge.scheduling.group_log import GroupLog
from bridge.scheduling.grouping import Group, form_groups
from bridge.scheduling.results import Fused, Transformed
from bridge.scheduling.retry import groups_to_try_again, kernels_of_parts, passes_much_on


def gated(x, weight, bias):
    """Normalise columns, which no kernel of rows can have, and gate halves, which need only rows."""
    a, b = F.batch_norm(x, None, None, weight, bias, training=True).chunk(2, -1)
    return F.silu(a) * b


def compiled(function, *shapes, dtype=torch.float32):
    torch._dynamo.reset()
    inputs = [torch.zeros(shape, dtype=dtype) for shape in shapes]
    found = offline.compile_for_gpu(function, inputs, compile_fx=backend)
    return found.n_kernels, bridge.report()


def test_what_follows_a_refused_band_is_fused():
    kernels, report = compiled(gated, (1024, 4096), (4096,), (4096,))
    assert kernels == 3, report
    refused, *_, last = report.groups
    assert not refused.fused and refused.reason is Reason.not_profitable and last.fused
    names = [name for group in report.groups for name in group.nodes]
    assert len(names) == len(set(names)), "a kernel is in one group of the report"


def test_little_is_not_tried_again():
    """Check that the passes are not run again where less than a launch could be gained."""
    _, report = compiled(gated, (256, 64), (64,), (64,))
    assert len(report.groups) == 1, report


def test_what_is_fused_at_once_is_tried_once():
    kernels, report = compiled(lambda x: F.silu(F.rms_norm(x, x.shape[-1:]).chunk(2, -1)[0]), (2048, 4096))
    assert kernels == 1 and len(report.groups) <= 1, report


def square_gradients(x, g, w, scale):
    """Compute the gradients of a norm of products of halves: of rows, and of weights, which are sums of columns."""
    first, second = x.chunk(2, -1)
    h = first * second
    dh = g * w * scale
    dh = dh - h * (dh * h * scale * scale).mean(-1, keepdim=True)
    return torch.cat([dh * second, dh * first], -1), (g * h * scale).sum(0)


def test_columns_as_many_as_rows_keep_no_rows_apart():
    """Check that sums of as many columns as rows keep no rows apart.

    A band goes over both, and would go down the columns; without the sums it is a kernel of rows.
    """
    kernels, report = compiled(square_gradients, (4096, 8192), (4096, 4096), (4096,), (4096, 1))
    assert kernels == report.kernels_after == 2, report.details()
    assert contradictions(report) == []


def test_a_kernel_of_two_groups_moves_its_bytes_once():
    """Check that a kernel of two groups moves its bytes once: x and g are read, and as much as x is written."""
    _, report = compiled(square_gradients, (4096, 8192), (4096, 4096), (4096,), (4096, 1))
    matrix = 4096 * 4096 * 4
    assert 5 * matrix < report.bytes_after < 5.5 * matrix


def mask_losses(x, t):
    """Compute a loss of each mask, and one of all elements: the mean of the first is one result."""
    p, n = x.sigmoid(), x.shape[-1]
    overlap = (p * t).sum(-1) / (n + p.sum(-1))
    return (1 - overlap).pow(0.75).mean() + F.binary_cross_entropy_with_logits(x, t)


def gate_gradients(x, g, scales):
    """Compute the gradients of a gate of scaled halves, and of their scales, which are sums of columns."""
    a, b = x.chunk(2, -1)
    scaled = b * scales[1]
    s, dg = torch.sigmoid(scaled.float()), g * F.silu(scaled)
    db = (g * (a * scales[0]) * s * (1 + scaled * (1 - s))).to(x.dtype)
    return torch.cat([dg * scales[0], db * scales[1]], -1), (dg * a).sum(0), (db * b).sum(0)


def beside_products(function, y, *inputs):
    """Compute a function beside two products, which need more memory than partial sums."""
    return function(*inputs), (y @ y) @ y


MOST = (16384, 16384)


def test_a_mean_keeps_no_rows_apart():
    """Check that a mean keeps no rows apart.

    With it all nests are in a loop of one iteration, and code motion takes the rows' band out of that.
    """
    kernels, report = compiled(functools.partial(beside_products, mask_losses), MOST, *[(16, 19, 131072)] * 2)
    assert kernels == report.kernels_after == 3, report.details()
    assert report.bytes_after < 0.6 * report.bytes_before
    assert contradictions(report) == []


def test_sums_of_columns_keep_no_halves_apart():
    """Check that sums of columns keep no halves apart, and join them afterwards.

    With the sums columns go outermost; without, the halves are one kernel.
    """
    function, shapes = functools.partial(beside_products, gate_gradients), [(8192, 11264), (8192, 5632), (2, 5632)]
    kernels, report = compiled(function, MOST, *shapes, dtype=torch.bfloat16)
    assert kernels == report.kernels_after == 2, report.details()
    assert report.bytes_after < 0.6 * report.bytes_before
    assert contradictions(report) == []


def test_sums_make_room_for_the_kernel_that_they_join():
    """Check that sums make room for the kernel that they join.

    Until then there are, beside it, the value that only the sums read, and their parts.
    """
    shapes = [(8192, 11264), (8192, 5632), (2, 5632)]
    kernels, report = compiled(gate_gradients, *shapes, dtype=torch.bfloat16)
    assert kernels == report.kernels_after == 2, report.details()
    assert report.bytes_after < 0.4 * report.bytes_before and report.peak_after < 0.8 * report.peak_before
    assert "bytes of memory more" not in str(report.details())
    assert contradictions(report) == []


def test_a_kernel_that_no_sums_join_is_taken_back(monkeypatch):
    """Check that a kernel that no sums join is undone, as there is no memory for it; that is reported once."""
    for join in ("add_up_columns", "merge_equal_loops"):
        monkeypatch.setattr(fuse, join, lambda schedule, *_: schedule)
    shapes = [(8192, 11264), (8192, 5632), (2, 5632)]
    kernels, report = compiled(gate_gradients, *shapes, dtype=torch.bfloat16)
    assert kernels == report.kernels_after == report.kernels_before, report.details()
    assert report.peak_after == report.peak_before
    assert [detail for group in report.groups for _, detail in group.apart if "bytes of memory more" in detail]
    assert contradictions(report) == []


def peaks_of_gated_segments(x):
    """Normalise, gate and reduce each segment, and reduce the row of their results."""
    first, second = F.rms_norm(x, x.shape[-1:]).chunk(2, -1)
    h = first * second.sigmoid()
    peaks = h.abs().amax(-1)
    return h, peaks, peaks.amax(-1)


def test_a_row_too_long_for_registers_leaves_its_segments_a_kernel():
    kernels, report = compiled(peaks_of_gated_segments, (64, 64, 128))
    assert kernels == 1, report.details()
    kernels, report = compiled(peaks_of_gated_segments, (16, 1024, 128))
    assert kernels == report.kernels_after == 2, report.details()
    assert Reason.not_liftable in [reason for group in report.groups for reason, _ in group.apart]
    assert contradictions(report) == []


def two_peaks_of_gated_segments(x, y):
    """Compute such peaks for a row that fits in registers and one that does not, with a result in common."""
    h, peaks, peak = peaks_of_gated_segments(x)
    g, more, most = peaks_of_gated_segments(y)
    return h, peaks, g, more, most, peak + most


def test_a_row_too_long_beside_one_that_is_not():
    kernels, report = compiled(two_peaks_of_gated_segments, (16, 64, 128), (16, 1024, 128))
    assert kernels == report.kernels_after, report.details()
    apart, _ = compiled(peaks_of_gated_segments, (16, 1024, 128))
    assert kernels <= apart + 2, report.details()
    assert contradictions(report) == []


def response_norm(x, scale):
    """Divide the response of each channel by the mean of all: of an image, added up in two stages."""
    response = x.norm(p=2, dim=(1, 2), keepdim=True)
    return scale * x * (response / (response.mean(-1, keepdim=True) + 1e-6)) + x


def images_normed(x, scale):
    """Normalise 8 groups of channels; a stage goes over as many parts of an image as its size asks for."""
    return F.silu(F.group_norm(x, 8, scale, scale))


@pytest.mark.parametrize(
    ("function", "shape", "sizes"), [(response_norm, (2, 96, 96, 64), (1, 2)), (images_normed, (2, 32, 96, 96), (2, 3))]
)
def test_a_kernel_that_has_no_nest_of_loops_kept_its_group_apart(function, shape, sizes):
    """Check that parts of an image of symbolic sides, without an affine address, keep only their kernel apart."""
    torch._dynamo.reset()
    channels = shape[1] if function is images_normed else shape[-1]
    x, scale = torch.zeros(shape), torch.zeros(channels)
    for size in sizes:
        torch._dynamo.mark_dynamic(x, size)
    before = offline.compile_for_gpu(function, [x, scale], dynamic=None).n_kernels
    torch._dynamo.reset()
    found = offline.compile_for_gpu(function, [x, scale], compile_fx=backend, dynamic=None)
    report = bridge.report()
    assert (before, found.n_kernels) == (4, 3), report.details()
    refused = [group for group in report.groups if group.reason is not None]
    assert [group.kernels_before for group in refused] == [1], report.details()
    assert contradictions(report) == []


def test_kernels_of_a_refused_band_are_tried_without_rows_of_segments():
    """Check that a refused band's kernels are tried without rows of segments where another band was fused.

    They are not tried with the user's own passes, nor a second time.
    """
    found = {}

    def look(schedule):
        (group,), _ = form_groups(schedule, 64)

        def again(options):
            commit = Commit({}, group, schedule, None, done=[object()], refused=[set(group.positions)])
            log = GroupLog.open("group0", 0, group, schedule)
            log.transformed = Transformed(rows_of_segments=True)
            return groups_to_try_again(commit, options, log)

        found["first"], found["positions"] = again(Options()), group.positions
        found["passes of the user's"] = again(Options(pipeline="builtin.module(cse)"))
        group.rows_of_segments = False
        found["second"] = again(Options())

    look_at_gpu_schedule(peaks_of_gated_segments, [torch.zeros(64, 64, 128)], look)
    (other,) = found["first"]
    assert other.positions == found["positions"] and not other.rows_of_segments
    assert found["passes of the user's"] == found["second"] == []


def pooled(x, scale, bias):
    """Normalise each place, and add up all by a softmax over what they are on average."""
    y = F.layer_norm(torch.tanh(x) + bias, x.shape[-1:], scale, bias)
    return (y * F.softmax(y.mean(-1), -1).unsqueeze(-1)).sum(1)


def test_what_is_known_of_a_fused_band_is_of_the_loops_that_inductor_had():
    """Check that narrowing a log to its fused kernels asks nothing of their nodes, which have Bridge's loops by then.

    Inductor's code generator raised an error for such a kernel, and the other kernels of the group were not tried.
    """
    torch._dynamo.reset()
    inputs = [torch.zeros(shape, requires_grad=True) for shape in ((32, 9, 64), (64,), (64,))]
    offline.compile_for_gpu(pooled, inputs, compile_fx=backend, backward=True)
    report = bridge.report()
    assert [group.faults for group in report.groups] == [[] for _ in report.groups], report.details()
    assert sum(group.fused for group in report.groups) >= 2 and contradictions(report) == []


@pytest.mark.parametrize(("done", "expected"), [([], ["a", "c"]), (["fused"], [])])
def test_kernels_of_which_a_band_had_a_part_are_tried_alone(done, expected):
    commit = Commit({}, Group([0, 1, 2, 3]), ["a", "b", "c", "d"], None, done=done, parted={2, 0})
    assert kernels_of_parts(commit) == expected


def weighted_rows(rows, weights):
    """Add up a few rows of each token, by weights of a softmax."""
    return F.silu((rows * weights.float().softmax(-1).to(rows.dtype)[..., None]).sum(-2))


def maps_of_levels(first, second, third, fourth, weights):
    """Add up four maps by weights that are normalised by their sum, as BiFPN does."""
    gates = F.relu(weights)
    return F.silu((torch.stack([first, second, third, fourth], -1) * (gates / (gates.sum() + 1e-4))).sum(-1))


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (weighted_rows, [(2048, 6, 1024), (2048, 6)]),
        (weighted_rows, [(2048, 7, 1000), (2048, 7)]),
        (maps_of_levels, [(8, 64, 32, 32)] * 4 + [(4,)]),
    ],
)
def test_products_that_a_lane_adds_up_were_stored(function, shapes):
    """Check that weighted rows are added up in one kernel, in the place of one that stores each row once more."""
    kernels, _ = compiled(function, *shapes, dtype=torch.bfloat16)
    assert kernels == 1


def test_weighted_rows_in_one_kernel_have_inductors_numbers():
    torch.manual_seed(0)
    for columns, count in ((32, 6), (20, 7)):
        inputs = [torch.randn(5, count, columns), torch.randn(5, count)]
        ours = offline.run_interpreted(weighted_rows, inputs, backend=backend)
        torch.testing.assert_close(ours, weighted_rows(*inputs), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize(("tokens", "passes"), [(4096, True), (16, False)])
def test_only_kernels_apart_that_pass_much_on_are_tried_in_pieces(tokens, passes):
    """Check that what has become one kernel, and what is worth no launch, does not count."""
    found = []

    def look(schedule):
        commit = Commit({}, Group(list(range(len(schedule))), set()), schedule, None)
        found.append(passes_much_on(commit))
        commit.done.append(Fused(schedule[0], frozenset(commit.group.positions), (), contextlib.ExitStack()))
        found.append(passes_much_on(commit))

    inputs = [torch.zeros(shape, dtype=torch.bfloat16) for shape in ((tokens, 6, 1024), (tokens, 6))]
    look_at_gpu_schedule(weighted_rows, inputs, look)
    assert found == [passes, False]
