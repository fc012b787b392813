"""Test that accesses under a guard that ends before the row have the guard's mask alone."""

from __future__ import annotations

import re

import pytest
import torch
from emitted import run_emitted
from interpreted_accesses import recorded_accesses
from torch._inductor.codegen.triton import TritonKernelOverrides

import bridge
from bridge.backend import bridge as bridge_backend
from bridge.lowering.triton.row_masks import noting_bounds


def test_the_rest_of_the_code_is_inductors():
    noting = noting_bounds(TritonKernelOverrides)
    assert noting is noting_bounds(TritonKernelOverrides)
    assert noting.exp is TritonKernelOverrides.exp


def with_sinks(scores, mask, sinks):
    """Compute attention's probabilities with an element more a row, as GPT-OSS does."""
    heads, rows, _ = scores.shape
    logits = torch.cat([scores * 0.125 + mask, sinks[:, None, None].expand(heads, rows, 1)], -1)
    logits = logits - logits.max(-1, keepdim=True)[0]
    return torch.softmax(logits, -1)[..., :-1].clone()


def sink_first(scores, mask, sinks):
    """Compute the same with the sink before the others, which a guard admits up to the end of the row."""
    heads, rows, _ = scores.shape
    logits = torch.cat([sinks[:, None, None].expand(heads, rows, 1), scores * 0.125 + mask], -1)
    logits = logits - logits.max(-1, keepdim=True)[0]
    return torch.softmax(logits, -1)[..., 1:].clone()


def emitted(function, columns):
    """Return the code for rows of so many columns and a sink, whose results are compared with eager's in float64."""
    generator = torch.Generator().manual_seed(0)
    tensors = [torch.randn(shape, generator=generator) for shape in ((4, 6, columns), (6, columns), (4,))]
    with recorded_accesses(whole=True) as touched:
        ours, codes = run_emitted(function, tensors, bridge_backend)
    assert bridge.report().fused and not touched.outside()
    torch.testing.assert_close(ours, function(*(t.double() for t in tensors)), check_dtype=False)
    return "\n".join(codes)


@pytest.mark.parametrize("columns", [40, 23])
def test_a_guard_that_ends_before_the_row_is_the_only_mask(columns):
    """Check that 40 of 41 elements are loaded and stored under one mask: each lane accessed memory by itself."""
    accesses = re.findall(r"tl\.(?:load|store)\(\w+ \+ \(r0_\d[^\n]*", emitted(with_sinks, columns))
    assert len(accesses) == 3 and not any("r0_mask" in access for access in accesses)


def test_a_guard_up_to_the_end_of_the_row_leaves_its_mask():
    accesses = re.findall(r"tl\.(?:load|store)\(\w+ \+ \(\(-1\) \+ r0_\d[^\n]*", emitted(sink_first, 40))
    assert accesses and all("r0_mask" in access for access in accesses)
