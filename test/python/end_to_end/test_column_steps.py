"""Test kernels of rows and columns whose programs compute fewer rows at a time than Inductor's runtime has them do."""

from __future__ import annotations

import pytest
import torch
from column_tests import TRAINING, decisions, leaf
from torch._inductor.utils import run_and_get_code
from training import adaln_residual, count, graphs

import bridge
from bridge.horizontal import column_sums
from bridge.horizontal.column_sums import in_short_steps, ways_of
from bridge.lowering.triton import column_loads
from bridge.offline.interpret import interpreter
from bridge.scheduling import columns as columns_of_scheduling


def gradients(function, inputs):
    """Return the gradients of the sum of all results, with numbers of their own for each element."""
    leaves = [tensor.detach().requires_grad_() for tensor in inputs]
    outputs = function(*leaves)
    weights = [torch.linspace(0.5, 1, output.numel()).view_as(output).to(output.dtype) for output in outputs]
    return torch.autograd.grad(outputs, leaves, weights)


def trained(rows, columns):
    """Return (gradients in the interpreter, those of eager in float64, the backward's code) of a modulated norm."""
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator) for shape in [(rows, columns)] * 2 + [(columns,)] * 3]
    torch._dynamo.reset()
    options = {"training": True, "strict": True, "force_fusion": True}
    compiled = torch.compile(adaln_residual, backend="bridge", dynamic=False, options=options)
    with interpreter(), torch.enable_grad():
        found, (_, code) = run_and_get_code(gradients, compiled, inputs)
    exact = gradients(adaln_residual, [tensor.double() for tensor in inputs])
    return found, exact, code


@pytest.mark.parametrize(("rows", "columns"), [(1290, 24), (1280, 32)])
def test_numbers_of_large_blocks_of_which_few_rows_are_computed_at_a_time(few_processors, monkeypatch, rows, columns):
    """Of a block of 256 rows Inductor's runtime computes eight at a time, of a small one four."""
    monkeypatch.setattr(columns_of_scheduling, "ways_of", lambda tile: [in_short_steps(tile)])
    found, exact, code = trained(rows, columns)
    assert len(decisions()) == 1, bridge.report()
    assert "config={'XBLOCK': 4, 'RSPLIT_SIZE': 256" in code
    for one, other in zip(found, exact, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize(("rows", "columns"), [(1290, 24), (1344, 32)])
def test_numbers_of_very_short_rows_in_long_steps(few_processors, monkeypatch, rows, columns):
    """Check that long steps have the numbers of short ones, also where the last block of 192 rows is not full."""
    monkeypatch.setattr(column_loads, "STEP_ELEMENTS", 512)
    monkeypatch.setattr(column_sums, "PROGRAMS_OF_A_GPU", 4)
    monkeypatch.setattr(columns_of_scheduling, "ways_of", lambda tile: ways_of(tile)[:1])
    monkeypatch.setattr(columns_of_scheduling, "blocks_to_try", lambda tile, processors: [192])
    found, exact, code = trained(rows, columns)
    assert "config={'XBLOCK': 16, 'RSPLIT_SIZE': 192" in code, bridge.report()
    for one, other in zip(found, exact, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-4)


def heads_gated(x, gate, weight, bias):
    """Norm each head, with a weight for each of its elements, and multiply by a gate, as RetNet does."""
    y = torch.nn.functional.layer_norm(x.float(), (x.shape[-1],)).flatten(-2).to(x.dtype) * weight + bias
    return y * torch.nn.functional.silu(gate)


def test_large_blocks_are_tried_where_the_parts_of_small_ones_have_no_room():
    """RetNet's gradient was four kernels: of 128 rows partial sums had no room, of 256 registers would have spilled."""
    sizes = (4, 2048, 16, 256), (4, 2048, 4096), (4096,), (4096,)
    _, backward = graphs(heads_gated, [leaf(*size) for size in sizes], TRAINING)
    assert count(backward) == "2", bridge.report()
    assert "config={'XBLOCK': 4, 'RSPLIT_SIZE': 256" in backward
