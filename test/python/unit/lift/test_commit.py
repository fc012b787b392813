"""Test that rows along which memory is far apart stay in Inductor's tiles of many rows, and what gains nothing too."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.lowering.lift import commit
from bridge.reasons import Reason, Unsupported


def halved_and_summed(x):
    y = x / 8
    return y, y.float().sum(0)


def sums_of_columns(a, b, c):
    return (a * c).sum(0), (b * c).sum(0)


def sums_of_rows(a, b, c):
    return (a * c).sum(-1), (b * c).sum(-1)


def embedded_patches(images, bias):
    """Store patches channels last, with a bias, and normalise them; in the input channels are first."""
    x = (images + bias[:, None, None]).contiguous(memory_format=torch.channels_last)
    rows = x.flatten(2).transpose(1, 2)
    return x, torch.nn.functional.layer_norm(rows, rows.shape[-1:])


def kernels(function, *inputs) -> tuple[int, int]:
    """Return the numbers of kernels without and with Bridge."""
    theirs = offline.compile_for_gpu(function, inputs)
    ours = offline.compile_for_gpu(function, inputs, compile_fx=bridge_backend)
    return theirs.n_kernels, ours.n_kernels


def test_a_column_is_not_kept_as_a_row():
    """Check that a column is not kept as a row.

    An H100 took 160 us for what Inductor's three kernels do in 12, each column read alone.
    """
    assert kernels(halved_and_summed, torch.randn(8192, 768).bfloat16()) == (3, 3)
    (group,) = bridge.report().groups
    assert group.reason is Reason.not_profitable and "beside its rows" in group.detail


def test_rows_are_not_read_across_memory_to_spare_a_transpose():
    """Check that rows are not read across memory to save a transpose.

    In a diffusion transformer (1152 channels) it took 70 us more on an H100 than the two kernels, by its counts.
    """
    inputs = [torch.randn(size).bfloat16() for size in ((32, 768, 16, 16), (768,))]
    kernels(embedded_patches, *inputs)
    (group,) = [group for group in bridge.report().groups if "beside its rows" in group.detail]
    assert group.reason is Reason.not_profitable
    assert group.kernels_after == group.kernels_before == 2


def shuffled_pixels(x, weight):
    """Normalise shuffled pixels, of which adjacent ones are of two channels."""
    pixels = torch.nn.functional.pixel_shuffle(x, 2).permute(0, 2, 3, 1).float()
    return (pixels * torch.rsqrt(pixels.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * weight


def test_rows_of_which_none_follows_another_in_memory_stay_in_tiles():
    """Check that rows that are not adjacent in memory stay in tiles.

    An H100 took 188 us for what Inductor's two kernels do in 85, as each lane of a warp loaded another sector.
    """
    inputs = [torch.randn(size).bfloat16() for size in ((16, 512, 64, 64), (128,))]
    assert kernels(shuffled_pixels, *inputs) == (2, 2)
    (group,) = bridge.report().groups
    assert group.reason is Reason.not_profitable and "beside its rows" in group.detail


def shifted_windows(image, windows, bias):
    """Compute Swin's sum after attention: its embedding is stored in planes, and the norm of it goes into windows."""
    tokens = windows.view(-1, 8, 8, 7, 7, 96).transpose(2, 3).reshape(-1, 56, 56, 96)
    tokens = image.permute(0, 2, 3, 1) + (tokens + bias)
    normed = torch.nn.functional.layer_norm(tokens, (96,)).roll((-3, -3), (1, 2))
    return normed.view(-1, 8, 7, 8, 7, 96).transpose(2, 3).reshape(-1, 49, 96)


def test_rows_within_a_line_of_a_rolled_image_are_one_kernel():
    """Check that rows within a line of a rolled image are one kernel: an H100 took 110 us more for two.

    53 pixels are adjacent before the line ends, and a block has eight.
    """
    inputs = [torch.randn(size).bfloat16() for size in ((64, 96, 56, 56), (4096, 49, 96), (96,))]
    assert kernels(shifted_windows, *inputs) == (2, 1)


def normed_channels(x, weight, residual):
    """Normalise the channels of each pixel, which are stored in planes, as ConvNeXt does."""
    centred = x - x.mean(1, keepdim=True)
    normed = centred * torch.rsqrt(centred.pow(2).mean(1, keepdim=True) + 1e-6)
    return torch.nn.functional.gelu(weight[:, None, None] * normed) + residual


def test_rows_side_by_side_are_judged_by_the_block_that_they_get():
    """Check that rows side by side are judged by the block that they get.

    The block had 32 pixels, a sector of each channel, and was judged as one of 8: 2 kernels.
    """
    x, residual = (torch.empty(16, 256, 56, 56, dtype=torch.bfloat16) for _ in range(2))
    assert kernels(normed_channels, x, torch.empty(256, dtype=torch.bfloat16), residual) == (2, 1)


def test_sums_of_columns_have_launches_of_their_own():
    inputs = torch.randn(100, 4096), torch.randn(130, 4096), torch.randn(4096)
    before, after = kernels(sums_of_columns, *inputs)
    assert before == after > 1
    assert kernels(sums_of_rows, *inputs) == (2, 1)


def sums_in_one_row(a, b, c, d):
    """Compute three sums over the rows of images, two of which load the same; what they store is next to each other."""
    return torch.cat([(a * b).sum(1), b.float().sum(1), (c.float() * d).sum(1)], -1)


@pytest.mark.parametrize(("rows", "dynamic", "saved"), [(256, False, 1), (1024, False, 0), (256, True, 0)])
def test_loops_that_share_nothing_are_one_where_their_tiles_are_chosen_for_them(rows, dynamic, saved):
    """Check that loops of symbols stay two, which took 22 us on an H200 and 48 in one, and those of many bytes."""
    inputs = [torch.randn(8, rows, 1152).bfloat16() for _ in range(4)]
    theirs, ours = (
        offline.compile_for_gpu(sums_in_one_row, inputs, compile_fx=fx, dynamic=dynamic)
        for fx in (None, bridge_backend)
    )
    assert theirs.n_kernels - ours.n_kernels == saved
    if not saved:
        details = [detail for group in bridge.report().groups for detail in (group.detail, *group.decisions)]
        assert any("saves 5.0 MB, a launch" in str(detail) for detail in details)


def test_other_loops_alone_are_no_gain():
    kernel = SimpleNamespace(get_operation_names=lambda: {"op0"})
    with pytest.raises(Unsupported, match="nothing less to load") as refusal:
        commit._check_rows(kernel, [kernel], SimpleNamespace(in_registers=False), commit._Before(0, [], False), 1)
    assert refusal.value.reason is Reason.not_profitable


@pytest.mark.parametrize("before", [100, 200])
def test_other_loops_are_a_gain_where_less_is_loaded(monkeypatch, before):
    """Check that other loops are a gain only where less is loaded.

    Of a short row, which Inductor keeps by itself, nothing is loaded again: this was reported as fused, 3 -> 3.
    """
    kernel = SimpleNamespace(get_operation_names=lambda: {"op0"})
    band = SimpleNamespace(in_registers=True, registers=None)
    monkeypatch.setattr(commit.inductor, "bytes_loaded", lambda kernel: 100)
    monkeypatch.setattr(commit.inductor, "bytes_beside_stores", lambda kernel, rows: {})
    if before > 100:
        return commit._check_rows(kernel, [kernel], band, commit._Before(before, [], False), 1)
    with pytest.raises(Unsupported, match="nothing less to load"):
        commit._check_rows(kernel, [kernel], band, commit._Before(before, [], False), 1)


@pytest.mark.parametrize("rows", [8, 1])
def test_a_row_is_not_kept_whose_stores_need_a_block_of_many(monkeypatch, rows):
    """Check that a row is not kept if its stores need a block of many rows.

    ESM's norms of q and k, which store their transpose: kept rows took 148 us on an H100, Inductor's loop 103.
    """
    kernel = SimpleNamespace(get_operation_names=lambda: {"op0"})
    band = SimpleNamespace(in_registers=True, registers=None)
    monkeypatch.setattr(commit.inductor, "bytes_loaded", lambda kernel: 100)
    monkeypatch.setattr(commit.inductor, "bytes_beside_stores", lambda kernel, rows: {"buf0": 10} if rows == 1 else {})
    monkeypatch.setattr(commit, "saved_bytes", lambda names, kernels: 0)
    if rows > 1:
        return commit._check_rows(kernel, [kernel], band, commit._Before(200, [], False), rows)
    with pytest.raises(Unsupported, match="beside its rows"):
        commit._check_rows(kernel, [kernel], band, commit._Before(200, [], False), rows)


@pytest.mark.parametrize(("lost", "pays"), [(1 << 20, True), (8 << 20, False)])
def test_few_programs_may_lose_more_time_than_a_launch(monkeypatch, lost, pays):
    """Check that few programs are refused where they lose more time than a launch.

    Of a token's heads all but one had a program each, and the cache's position was counted up in another kernel.
    """
    kernel = SimpleNamespace(get_operation_names=lambda: {"op0"})
    monkeypatch.setattr(commit.inductor, "device_of", lambda kernel: None)
    monkeypatch.setattr(commit, "lost_bytes", lambda *_: lost)
    monkeypatch.setattr(commit, "programs_of", lambda *_: 1)
    monkeypatch.setattr(commit, "saved_bytes", lambda names, kernels: commit.LAUNCH_BYTES)
    before = commit._Before(0, [], unrolled=False)
    commit._check_programs(kernel, [kernel], None, before, 1)  # other loops alone are judged by what is loaded
    if pays:
        return commit._check_programs(kernel, [kernel, kernel], None, before, 1)
    with pytest.raises(Unsupported, match=r"1 programs lose the time of 8\.0 MB") as refusal:
        commit._check_programs(kernel, [kernel, kernel], None, before, 1)
    assert refusal.value.reason is Reason.not_profitable


@pytest.mark.parametrize("beside", [8 << 20, 12 << 20])
def test_one_tile_for_accesses_that_had_their_own(monkeypatch, beside):
    """Check that accesses with tiles of their own are not put in one tile where it moves too much.

    Averages of 2 x 2 patches and the patches' transpose took 184 us in one kernel on an H100, apart 28.
    """
    kernel = SimpleNamespace(get_operation_names=lambda: {"op0"})
    monkeypatch.setattr(commit.inductor, "reduces", lambda kernel: False)
    monkeypatch.setattr(commit.inductor, "bytes_beside_tile", lambda kernel: beside)
    monkeypatch.setattr(commit, "saved_bytes", lambda names, kernels: commit.LAUNCH_BYTES)
    before = commit._Before(0, [], unrolled=False, beside=4 << 20)
    commit._check_tile(kernel, [kernel], before)
    if beside - before.beside <= commit.LAUNCH_BYTES:
        return commit._check_tile(kernel, [kernel, kernel], before)
    with pytest.raises(Unsupported, match=r"moves 8\.0 MB beside") as refusal:
        commit._check_tile(kernel, [kernel, kernel], before)
    assert refusal.value.reason is Reason.not_profitable


def gated_and_summed(x, gate):
    """Gate long rows in one pass, and add up what is stored; some rows are of other halves."""
    first, second = gate.chunk(2, 1)
    weight = torch.sigmoid(second.float())
    y = torch.cat([weight * x, (1 - weight) * weight * first * x], 1).to(torch.bfloat16)
    return y, y.sum((0, 2))


def test_a_long_row_that_is_loaded_once_keeps_its_loop():
    """Check that a long row that is loaded once keeps its loop.

    In registers, where 29% of the lanes are idle, it took 93 us instead of 62 on an H100.
    """
    x, gate = (torch.zeros(4, rows, 23210, dtype=torch.bfloat16) for rows in (128, 256))
    code = offline.compile_for_gpu(gated_and_summed, [x, gate], compile_fx=bridge_backend).graphs[0].code
    assert "@triton_heuristics.reduction(" in code
    assert not any(group.fused for group in bridge.report().groups)


def test_a_row_in_a_loop_is_loaded_again(monkeypatch):
    monkeypatch.setattr(commit.inductor, "bytes_loaded", lambda kernel: 100)
    monkeypatch.setattr(commit.inductor, "bytes_loaded_in_passes", lambda kernel: 200)
    monkeypatch.setattr(commit.inductor, "loop_nodes", lambda kernel: [kernel])
    monkeypatch.setattr(commit.inductor, "node_sizes", lambda node: ([8], node))
    monkeypatch.setattr(commit.inductor, "size_hint", int)
    assert [commit._bytes_loaded(reduced) for reduced in ([], [1024], [64, 64])] == [100, 100, 200]
