"""Test a second opinion: isl agrees with what the passes make of every pattern."""

from __future__ import annotations

import pytest
import torch
from patterns import TESTED

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend


def rechecked(gm, inputs):
    return bridge_backend(gm, inputs, options={"recheck": True, "strict": True})


@pytest.mark.one_in(12)
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("pattern", TESTED, ids=lambda pattern: pattern.name)
def test_isl_agrees(pattern, dynamic):
    inputs = pattern.make(None, torch.bfloat16, "cpu", small=True)
    if dynamic:
        pattern.mark_dynamic_rows(inputs)
    offline.compile_for_gpu(pattern.function, inputs, compile_fx=rechecked, dynamic=None if dynamic else False)
    for group in bridge.report().groups:
        assert group.seconds.keys() >= {"recheck"}
        assert not group.fused or any(line.startswith("writes: ") for line in group.certificate)
