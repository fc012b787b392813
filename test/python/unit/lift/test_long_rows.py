"""Test what a kernel of longer rows loses, and the registers of its threads."""

from __future__ import annotations

import functools
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from training import count, graphs, several

from bridge import offline
from bridge.backend import bridge
from bridge.lowering.lift import long_rows
from bridge.lowering.lift.long_rows import SHARE, Rows
from bridge.scheduling import fuse


@pytest.fixture
def gpu(monkeypatch):
    """Make kernels say themselves what they reduce, load and move."""
    monkeypatch.setattr(long_rows.inductor, "bytes_touched", lambda kernel: {"x": kernel.moved})
    monkeypatch.setattr(long_rows.inductor, "bytes_of_element", lambda kernel: kernel.loaded)
    monkeypatch.setattr(long_rows.inductor, "bytes_of_own_element", lambda kernel: kernel.own)
    monkeypatch.setattr(long_rows.inductor, "loop_nodes", lambda kernel: [kernel])
    monkeypatch.setattr(long_rows.inductor, "node_sizes", lambda kernel: ([8], [kernel.length]))
    monkeypatch.setattr(long_rows.inductor, "size_hint", int)


def kernel_of(length, loaded=4, moved=3 << 20, own=2):
    return SimpleNamespace(length=length, loaded=loaded, moved=moved, own=own)


def band_of(registers, in_registers=True, state_registers=0, own=None):
    kept = {"registers": registers, "own_registers": registers if own is None else own}
    return SimpleNamespace(**kept, in_registers=in_registers, state_registers=state_registers)


def test_the_longest_rows_are_those_of_any_kernel(gpu):
    assert long_rows.longest_rows([]) == Rows(1, 0, 0)
    assert long_rows.longest_rows([kernel_of(1000, 2), kernel_of(1, 64)]) == Rows(1024, 512, 512)
    assert long_rows.longest_rows([kernel_of(1000, 2), kernel_of(512, 8)]) == Rows(1024, 1024, 512)


@pytest.mark.parametrize(
    ("length", "kept", "lost"), [(8192, 4096, True), (4096, 6144, True), (4096, 5120, False), (4000, 4096, False)]
)
def test_longer_rows_or_more_of_them_take_a_share_longer(gpu, length, kept, lost):
    """Check that longer rows, or more of them, take a share longer.

    What is loaded after the reduction, as angles are, needs no more room at a time.
    """
    found = long_rows.bytes_of_long_rows(kernel_of(length, loaded=64), band_of(kept), Rows(4096, 4096, 4096))
    assert found == (int(SHARE * (3 << 20)) if lost else 0)


@pytest.mark.parametrize(("own", "lost"), [(4096, False), (6144, True)])
def test_parameters_of_columns_are_no_second_row(gpu, own, lost):
    """Check that a weight beside a residual and its branch is not a row that a program keeps beside them."""
    found = long_rows.bytes_of_long_rows(kernel_of(4096), band_of(6144, own=own), Rows(4096, 4096, 4096))
    assert (found > 0) == lost


@pytest.mark.parametrize("band", [band_of(2048), band_of(None), band_of(4096, False), band_of(4096, True, 64)])
def test_rows_of_which_a_block_has_several_are_not_judged(gpu, band):
    assert not long_rows.keeps_long_rows(band)
    assert long_rows.bytes_of_long_rows(kernel_of(8192), band, Rows(1024, 1024, 1024)) == 0


@pytest.mark.parametrize(
    ("length", "registers", "work", "idle"),
    [(5461, 12288, 32, 0), (4096, 16384, 32, 0), (5461, 16384, 32, 48), (5461, 32768, 96, 64)],
)
def test_a_block_of_long_rows_loads_nothing_while_it_computes(gpu, monkeypatch, length, registers, work, idle):
    """Check that a block of long rows loads nothing while it computes, and never takes longer than its bytes.

    All lanes of a row compute, also those that have no element.
    """
    monkeypatch.setattr(long_rows, "executed", lambda kernel, beside: SimpleNamespace(moved=work << 20))
    band = band_of(registers)
    band.nodes = [SimpleNamespace(reduce_sizes=[]), SimpleNamespace(reduce_sizes=[length])]
    assert long_rows.bytes_while_computing(kernel_of(length, moved=64 << 20), band) >> 20 == idle


@pytest.mark.parametrize(
    ("length", "registers", "room"), [(4096, 16, 255), (8192, 32, 255), (16384, 32, 128), (32768, 64, 128)]
)
def test_registers_of_a_thread_are_those_of_all_that_it_loads(gpu, length, registers, room):
    assert long_rows.registers_of_thread(kernel_of(length, 4)) == (registers, room)


def scaled_instances(x, scale, weight, bias):
    return F.instance_norm(x, weight=weight, bias=bias) * scale[:, :, None, None]


def weighted_experts(outputs, scores):
    return (outputs * torch.softmax(scores.float(), -1)[..., None].to(outputs.dtype)).sum(1)


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (scaled_instances, [(16, 256, 32, 32), (16, 256), (256,), (256,)]),
        (weighted_experts, [(2048, 8, 1024), (2048, 8)]),
    ],
)
def test_rows_of_several_are_not_one_where_it_saves_a_launch_only(monkeypatch, function, shapes):
    """Check that rows of several nodes are not merged to save only a launch.

    Sixteen planes in one program of 16384 lanes spilled 510 words a thread, and took 283 us instead of 21. The small
    sums over planes, which are merged, are left apart here.
    """
    monkeypatch.setattr(fuse, "merge_equal_loops", lambda schedule, *_: schedule)
    _, theirs = graphs(function, several(*shapes), torch._inductor.compile_fx.compile_fx)
    _, ours = graphs(function, several(*shapes), functools.partial(bridge, options={"training": True}))
    assert count(ours) == count(theirs)


def scaled_blocks(x, branch, weight):
    h = x + branch
    y = h.float()
    y = (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).to(h.dtype) * weight
    blocks = y.float().unflatten(-1, (-1, 128))
    scale = blocks.abs().amax(-1, keepdim=True).clamp(min=1e-8) / 127
    return h, (blocks / scale).round().flatten(-2).to(torch.int8), scale[..., 0]


@pytest.mark.parametrize("columns", [2048, 4096, 8192])
def test_a_residual_its_norm_and_scales_of_blocks_are_one_kernel(columns):
    """Check that a norm's weight does not keep blocks apart from the residual: they are as many rows as before."""
    inputs = [torch.randn(shape, dtype=torch.bfloat16) for shape in [(2048, columns)] * 2 + [(columns,)]]
    found = offline.compile_for_gpu(scaled_blocks, inputs, compile_fx=bridge)
    assert [len(graph.launches) for graph in found.graphs] == [1]


def test_a_residual_its_norm_and_scales_of_blocks_have_inductors_numbers():
    torch.manual_seed(0)
    inputs = [torch.randn(shape, dtype=torch.bfloat16) for shape in [(5, 2048)] * 2 + [(2048,)]]
    ours = offline.run_interpreted(scaled_blocks, inputs, backend=bridge)
    theirs = offline.run_interpreted(scaled_blocks, inputs)
    assert torch.equal(ours[0], theirs[0])
    for mine, other in zip(ours[1:], theirs[1:], strict=True):
        torch.testing.assert_close(mine.float(), other.float(), atol=1.01, rtol=1e-5)
