"""Test which kernels meet in a group, and whether rows take over what would have tiles alone; without a GPU."""

from __future__ import annotations

import torch
from emitted import run_emitted

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.reasons import Reason

HEADS, WIDTH, ROWS = 4, 256, 2048


def rms(x, weight):
    x32 = x.float()
    return (x32 * torch.rsqrt(x32.pow(2).mean(-1, keepdim=True) + 1e-6) * (1 + weight.float())).to(x.dtype)


def rotated(x, weight, angles):
    """Normalise and rotate heads: (rows, heads * WIDTH) -> (heads, rows, WIDTH).

    angles: (WIDTH // 2, rows), as their product is stored.
    """
    x = rms(x.view(len(x), -1, WIDTH), weight).transpose(0, 1)
    angles = torch.cat([angles.t(), angles.t()], -1)
    first, second = x.chunk(2, -1)
    return (x * angles.cos() + torch.cat([-second, first], -1) * angles.sin()).to(x.dtype)


def repeated(x):
    return x[:, None].expand(-1, 2, -1, -1).flatten(0, 1)


def keys(k, weight, angles):
    return repeated(rotated(k, weight, angles))


def queries_and_keys(q, k, wq, wk, angles):
    return rotated(q, wq, angles), keys(k, wk, angles)


def scaled(k, weight, other):
    """Normalise and turn keys, multiplied by a transposed operand that is as large as the rows."""
    k = rms(k.view(len(k), -1, WIDTH), weight)
    first, second = k.chunk(2, -1)
    turned = torch.cat([-second, first], -1)
    return repeated(((k + turned) * other.t().view(k.shape)).to(k.dtype).transpose(0, 1))


def tensors(*shapes, dtype=torch.bfloat16):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def operands(rows=ROWS):
    q, k, wq, wk = tensors((rows, 2 * HEADS * WIDTH), (rows, HEADS * WIDTH), (WIDTH,), (WIDTH,))
    return q, k, wq, wk, *tensors((WIDTH // 2, rows), dtype=torch.float32)


def counts(fn, inputs):
    """Return (kernels of Inductor's, Bridge's)."""
    before, after = (
        offline.compile_for_gpu(fn, inputs, compile_fx=backend).n_kernels for backend in (None, bridge_backend)
    )
    return before, after


def decisions():
    return [line for group in bridge.report().groups for line in group.decisions]


def test_a_kernel_joins_those_that_its_values_come_from():
    """Check that a kernel joins those that its values come from.

    It had joined the first with which it reads the angles, and the sums of its own rows stayed apart.
    """
    before, after = counts(queries_and_keys, operands())
    assert before > 2 and after == 1, bridge.report()
    assert [line[:15] for line in decisions() if "saves" in line] == ["no tiles: saves"]


def test_small_transposed_operand_is_read_without_tiles():
    _, k, _, wk, angles = operands()
    before, after = counts(keys, [k, wk, angles])
    assert before > 1 and after == 1, bridge.report()
    assert any(line.startswith("no tiles: saves") for line in decisions())


def beside_transposed(rows):
    return [*tensors((rows, HEADS * WIDTH), (WIDTH,)), *tensors((HEADS * WIDTH, rows), dtype=torch.float32)]


def test_rows_are_in_the_order_of_a_large_transposed_operand():
    """Check that rows are in the order of a large transposed operand, whose rows of one head are adjacent."""
    assert counts(scaled, beside_transposed(ROWS)) == (2, 1), bridge.report()


def test_large_transposed_operand_keeps_its_tiles():
    """Check that a large transposed operand keeps its tiles for an odd number of rows: Triton sees no neighbours."""
    inputs = beside_transposed(ROWS - 1)
    assert counts(scaled, inputs) == (2, 2), bridge.report()
    (line,) = decisions()
    assert line.startswith(f"apart [{Reason.not_profitable.name}]") and "without tiles" in line
    with bridge.enabled(force_fusion=True):
        forced = offline.compile_for_gpu(scaled, inputs)
    assert forced.n_kernels == 1 and "no tiles" in decisions(), bridge.report()


def test_numerics():
    inputs = operands(rows=16)
    exact = queries_and_keys(*[t.double() for t in inputs])
    ours, _ = run_emitted(queries_and_keys, inputs, bridge_backend)
    for result, expected in zip(ours, exact, strict=True):
        assert ((result.double() - expected).norm() / expected.norm()).item() < 4e-3


def normed_side_by_side(x, y):
    """Compute parts of a `cat` in one kernel, and read the whole in another."""
    first, second = (torch.nn.functional.normalize(tensor.float(), dim=-1) for tensor in (x, y))
    return (first * second).sum(-1), torch.cat([first, second], -1).to(x.dtype)


def test_parts_of_a_buffer_are_no_kernel_that_is_left_alone():
    """Check that a `cat` and its reader are refused for the right reason.

    The report said that the `cat` had no plain loops, and that a kernel came between it and its reader.
    """
    counts(normed_side_by_side, tensors((ROWS, WIDTH * HEADS), (ROWS, WIDTH * HEADS)))
    left = [(refusal.reason, refusal.detail) for refusal in bridge.report().refusals]
    assert [reason for reason, _ in left] == [Reason.cycle_through_other_node]
    assert left[0][1].endswith("leads through a buffer whose parts are written first, as those of a cat")
