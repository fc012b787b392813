"""Test that what is loaded by a number of a place in a row has the mask of the row."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from emitted import run_emitted
from interpreted_accesses import recorded_accesses
from torch._inductor.codegen.triton import TritonKernelOverrides

import bridge
from bridge.backend import bridge as bridge_backend
from bridge.lowering.triton.index_values import masking_values


def test_the_rest_of_the_code_is_inductors():
    masking = masking_values(TritonKernelOverrides)
    assert masking is masking_values(TritonKernelOverrides)
    assert masking.exp is TritonKernelOverrides.exp


def test_the_second_half_of_a_resized_row_is_not_read_behind_its_end():
    """Check that lanes 19 to 31 of the second half load nothing: they read elements 84 and on of rows of 64."""

    def gated(x):
        first, second = F.layer_norm(F.interpolate(x, scale_factor=0.6, mode="bilinear"), (38,)).chunk(2, -1)
        return first * second.sigmoid()

    x = torch.randn(2, 3, 2, 64, generator=torch.Generator().manual_seed(0))
    with recorded_accesses(whole=True) as touched:
        ours, _ = run_emitted(gated, [x], bridge_backend)
    assert bridge.report().fused and not touched.outside()
    torch.testing.assert_close(ours, gated(x.double()), check_dtype=False, rtol=1e-5, atol=1e-5)
