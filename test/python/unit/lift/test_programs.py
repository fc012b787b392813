"""Test what kernels of few rows lose, which leave multiprocessors idle."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.lowering.lift import programs
from bridge.lowering.triton.profitability import INSTRUCTIONS_A_BYTE


@pytest.fixture
def gpu(monkeypatch):
    """Set up a GPU of 132 multiprocessors, and kernels that say themselves what they move and execute."""
    monkeypatch.setattr(programs.inductor, "multiprocessors", lambda device: 132)
    monkeypatch.setattr(programs.inductor, "bytes_touched", lambda kernel: {"x": kernel.moved})
    monkeypatch.setattr(programs.inductor, "instructions_of", lambda kernel, beside: kernel.executed)
    monkeypatch.setattr(programs.inductor, "loop_nodes", lambda kernel: kernel.sizes)
    monkeypatch.setattr(programs.inductor, "node_sizes", lambda sizes: sizes)
    monkeypatch.setattr(programs.inductor, "size_hint", int)


def kernel_of(*sizes, moved=0, executed=0):
    return SimpleNamespace(sizes=sizes, moved=moved, executed=executed)


def band_of(count, registers=1024, lanes=1024):
    """Return a band of so many rows, which a block keeps."""
    node = SimpleNamespace(iter_sizes=[count], reduce_sizes=[lanes])
    return SimpleNamespace(nodes=[node], in_registers=True, registers=registers, state_registers=0)


@pytest.mark.parametrize(
    ("count", "moved", "lost"), [(1, 1 << 18, 131 << 16), (66, 1 << 24, 1 << 22), (132, 1 << 30, 0)]
)
def test_one_multiprocessor_moves_a_thirty_third_of_all(gpu, count, moved, lost):
    assert programs.programs_of(band_of(count), 1) == count
    assert programs.lost_bytes(kernel_of(moved=moved), count, None, [], True) == lost


def test_instructions_of_one_program_are_counted_against_those_of_many(gpu):
    """Check that instructions of one program are compared with those of many programs.

    32 heads of one token as one row; the same instructions in 32 programs of Inductor's took a 32nd.
    """
    apart = programs.executed(kernel_of(([32], [128]), ([32, 128], []), executed=71000))
    assert apart == (pytest.approx(71000 * programs.EMITTED / INSTRUCTIONS_A_BYTE), 32)
    assert programs.lost_bytes(kernel_of(), 1, None, [apart], False) == int(apart.moved * 132 * 31 / 32)
    for rows in (32, 64, 4096):
        assert programs.lost_bytes(kernel_of(), rows, None, [apart], False) == 0


def test_kernels_without_a_reduction_have_programs_of_some_elements(gpu):
    assert programs.executed(kernel_of(([4096], []))).programs == 16


def test_a_band_without_a_reduction_is_not_judged(gpu):
    band = SimpleNamespace(nodes=[SimpleNamespace(iter_sizes=[4], reduce_sizes=[])], in_registers=False, registers=None)
    assert programs.programs_of(band, 1) == 0
    assert programs.lost_bytes(kernel_of(), 0, None, [programs.Executed(1e9, 132)], False) == 0


def test_lanes_that_reduce_have_half_a_block():
    band = band_of(64, registers=64, lanes=64)
    assert [programs.rows_of_block(band, unrolled) for unrolled in (False, True)] == [16, 8]
    band.in_registers = False
    assert programs.rows_of_block(band, True) == 1


def test_rows_side_by_side_have_larger_blocks():
    band = band_of(64, registers=128, lanes=256)
    assert [programs.rows_of_block(band, False, side_by_side) for side_by_side in (False, True)] == [8, 32]
    assert programs.programs_of(band, 32) == 2
    band.state_registers = 32768  # a multiprocessor has room for one block of their warps
    assert programs.rows_of_block(band, False, True) == programs.rows_of_block(band, False)


def test_lanes_that_reduce_to_states_have_blocks_by_all_that_they_load():
    band = band_of(64, registers=64, lanes=64)
    band.state_registers = 512
    assert programs.row_of_block(band, True) == (1024, True, True)
    assert programs.rows_of_block(band, True) == 2


def query_of_one_token(x, weight, position, frequencies):
    """Normalise and rotate the heads of one token, and count up its position, as a step of decoding does."""
    heads = x.view(32, 128)
    normed = heads * torch.rsqrt(heads.pow(2).mean(-1, keepdim=True) + 1e-6) * weight
    angle = torch.cat([frequencies, frequencies]) * position
    first, second = normed.chunk(2, -1)
    return normed * angle.cos() + torch.cat([-second, first], -1) * angle.sin(), position.add_(1)


def test_heads_of_a_token_keep_their_programs():
    """Check that heads of a token keep their programs.

    One row of 4096 took 128 registers a thread in one program; copies of the cache were in a launch with it.
    """
    inputs = [torch.randn(1, 4096), torch.randn(128), torch.tensor([7]), torch.randn(64)]
    result = offline.compile_for_gpu(query_of_one_token, inputs, compile_fx=bridge_backend)
    assert not any("r0_numel = 4096" in kernel.source for kernel in result.kernels)


@pytest.mark.parametrize(("activation", "launches"), [(torch.relu, 1), (torch.nn.functional.gelu, 2)])
def test_lanes_reduce_by_no_more_code_than_is_at_hand(activation, launches):
    """Check that 49 GELUs are added up apart from the mean of 1024 norms, and 49 numbers are not.

    In a loop over 2560 that took 216 us on an H200, and 87 apart; kept, they were 15848 instructions.
    """

    def mean_of_norms(x):
        norms = activation(x).square().sum(1).sqrt()
        return norms, norms.mean(-1)

    x = torch.randn(256, 49, 1024, dtype=torch.bfloat16)
    assert len(offline.compile_for_gpu(mean_of_norms, [x], compile_fx=bridge_backend).launches) == launches
