"""Test programs that overwrite their inputs: kernels of the whole row, and nothing is overwritten before it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from emitted import run_emitted
from emitted_claims import launches
from torch import Tensor

import bridge
from bridge.backend import bridge as backend_bridge

ROWS, WIDTH = 12, 64


def rms(x: Tensor) -> Tensor:
    wide = x.float() if x.dtype is torch.bfloat16 else x
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def gate(x: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return F.silu(a) * b


def residual(total: Tensor, y: Tensor) -> Tensor:
    total.add_(y)
    return gate(rms(total))


def half_of_a_row(x: Tensor, y: Tensor) -> Tensor:
    out = gate(rms(x))
    x[..., : WIDTH // 2].add_(y[..., : WIDTH // 2])
    return out


def running_statistics(x: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    own = x.mean(-1, keepdim=True)
    spread = (x - own).pow(2).mean(-1, keepdim=True)
    mean.mul_(0.9).add_(own * 0.1)
    variance.mul_(0.9).add_(spread * 0.1)
    return gate((x - own) * torch.rsqrt(spread + 1e-5))


def waits_for_what_it_does_not_read(x: Tensor, y: Tensor) -> Tensor:
    """Overwrite y after x, which was made of y, and read only the sum of x."""
    x.mul_(torch.sigmoid(y))
    return y.add_(x.sum(-1, keepdim=True))


def a_new_tensor(x: Tensor, y: Tensor) -> Tensor:
    """Scatter into a new tensor that Inductor allocates and then overwrites."""
    return torch.softmax(torch.as_strided_scatter(x * 2, y + 1, y.shape, y.stride()), -1)


def halves_change_places(x: Tensor, y: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    out = rms(x)[..., : WIDTH // 2] * b * y[..., : WIDTH // 2]
    x.copy_(torch.cat([b, a], -1))
    return out


def row_is_turned_around(x: Tensor, y: Tensor) -> Tensor:
    out = rms(x) * y
    x.copy_(x.flip(-1))
    return out


def rows_move(x: Tensor, y: Tensor) -> Tensor:
    out = gate(rms(x) * y)
    x[:-1].copy_(x[1:].clone())
    return out


def twice(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    x.add_(y)
    out = gate(rms(x))
    x.mul_(2)
    return out, torch.softmax(x, -1)


def a_part_of_a_cache(cache: Tensor, x: Tensor) -> Tensor:
    cache[:, 8 : 8 + WIDTH // 2].copy_(gate(rms(x)))
    return cache.amax(-1)


def differences_and_their_sum(x: Tensor, table: Tensor, weights: Tensor) -> Tensor:
    """Write differences of a table and add up their products, of which Inductor adds seven one by one.

    Without a reduction, nothing says which lane holds the elements of others.
    """
    x[0] = weights[0]
    x[1:] = table[(table.abs() * 2).long().clamp(max=6)].diff()
    return (x * weights).sum()


def windows_of_rows(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Average windows of rows; Bridge computes fewer windows, in a kernel that also reads a part of their input."""
    rows = x + x @ weight
    means = torch.cat([rows[:, 1:3] * 2, rows, x], 1).unfold(1, 5, 1).mean(-1)[:, : x.shape[1]]
    gated = rms(torch.tanh(rows - means))
    return gated, (gated * means).sum((0, 1))


def _season_and_trend(x: Tensor) -> tuple[Tensor, Tensor]:
    """Decompose as transformers' Autoformer does: the moving average of rows that are repeated at both ends."""
    padded = torch.cat([x[:, :1].repeat(1, 12, 1), x, x[:, -1:].repeat(1, 12, 1)], 1)
    trend = F.avg_pool1d(padded.transpose(1, 2), 25, 1).transpose(1, 2)
    return x - trend, trend


def moving_averages(x: Tensor, y: Tensor, weight: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Compute moving averages: one kernel of Bridge reads what an average is taken of, and the rows, a part of it."""
    season, trend = _season_and_trend(y + x @ weight)
    hidden = F.gelu(F.layer_norm(season, season.shape[-1:], scale) @ weight)
    season, later = _season_and_trend(season + hidden @ weight)
    normed = F.layer_norm(season, season.shape[-1:], scale)
    return normed - normed.mean(1, keepdim=True), trend + later


def _row(*extents: int) -> tuple[int, ...]:
    return extents or (ROWS, WIDTH)


@dataclass(frozen=True)
class Program:
    """Hold a function, the shapes of its inputs, and the largest number of kernels allowed for a GPU."""

    function: Callable
    shapes: list[tuple[int, ...]]
    kernels: int

    def inputs(self, dtype: torch.dtype) -> list[Tensor]:
        torch.manual_seed(0)
        return [torch.randn(shape).to(dtype) for shape in self.shapes]


PROGRAMS = [
    Program(residual, [_row(), _row()], 1),
    Program(half_of_a_row, [_row(), _row()], 1),
    Program(running_statistics, [_row(), _row(ROWS, 1), _row(ROWS, 1)], 1),
    Program(waits_for_what_it_does_not_read, [_row(), _row()], 1),
    Program(a_new_tensor, [_row(), _row()], 3),
    Program(halves_change_places, [_row(), _row()], 3),
    Program(row_is_turned_around, [_row(), _row()], 2),
    Program(rows_move, [_row(), _row()], 3),
    Program(twice, [_row(), _row()], 3),
    Program(a_part_of_a_cache, [_row(), _row()], 3),
    Program(differences_and_their_sum, [_row(7), _row(7), _row(7)], 2),
]


def _all(results: object, inputs: list[Tensor]) -> list[Tensor]:
    return [*(results if isinstance(results, tuple) else (results,)), *inputs]


def _error(results: list[Tensor], expected: list[Tensor]) -> float:
    return max(((r.double() - e).norm() / e.norm()).item() for r, e in zip(results, expected, strict=True))


def _expected(program: Program, dtype: torch.dtype) -> list[Tensor]:
    inputs = [t.double() for t in program.inputs(dtype)]
    return _all(program.function(*inputs), inputs)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.function.__name__)
def test_gpu(program, dtype, compiler):
    inputs = program.inputs(dtype)
    results, codes = run_emitted(program.function, inputs, backend_bridge)
    assert _error(_all(results, inputs), _expected(program, dtype)) < (1e-6 if dtype is torch.float32 else 4e-3)
    assert sum(map(launches, codes)) <= program.kernels
    assert not [reason for reason, _ in bridge.report().reasons() if reason is bridge.Reason.internal_error]


TOKENS, WEIGHT = (1, 9, 48), (48, 48)


@pytest.mark.parametrize(
    "program",
    [Program(windows_of_rows, [TOKENS, WEIGHT], 3), Program(moving_averages, [TOKENS, TOKENS, WEIGHT, (48,)], 6)],
    ids=lambda p: p.function.__name__,
)
def test_a_piece_is_kept_until_all_programs_have_read_the_whole(program, compiler):
    """Check that a part of a buffer keeps its memory until all programs have read the whole buffer.

    Before it gives that memory to a result, Inductor asks only for readers that name the part itself.
    """
    inputs = program.inputs(torch.float32)
    results, codes = run_emitted(program.function, inputs, backend_bridge)
    assert _error(_all(results, inputs), _expected(program, torch.float32)) < 1e-6
    assert sum(map(launches, codes)) <= program.kernels


def test_all_threads_have_read_before_the_first_one_overwrites(compiler):
    """Check that a barrier follows the reads: two accesses of a lane may be made by two threads."""
    _, (code,) = run_emitted(residual, PROGRAMS[0].inputs(torch.float32), backend_bridge)
    stored = code[: code.index("tl.store(out_ptr3")]
    assert "tl.debug_barrier()" in stored[stored.rindex("tl.load") :]


@pytest.mark.parametrize("program", PROGRAMS[:6], ids=lambda p: p.function.__name__)
def test_cpu(program, compiler):
    inputs = program.inputs(torch.float32)
    results = compiler(program.function, backend=backend_bridge)(*inputs)
    assert _error(_all(results, inputs), _expected(program, torch.float32)) < 1e-6
    assert not [reason for reason, _ in bridge.report().reasons() if reason is bridge.Reason.internal_error]
