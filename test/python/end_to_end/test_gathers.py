"""Lookups in inputs between kernels that become one: embeddings, rotations by position, losses of a target."""

from __future__ import annotations

import pytest
import torch
from emitted import run_emitted
from lookups import LOOKUPS, as_tuple, double

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend

every_lookup = pytest.mark.parametrize("lookup", LOOKUPS, ids=lambda lookup: lookup.function.__name__)


def assert_eager(results, lookup, inputs):
    expected = lookup.function(*double(inputs))
    pairs = zip(as_tuple(results), as_tuple(expected), strict=True)
    for ours, theirs in pairs:
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-4, atol=1e-5)


def launches(codes):
    return sum(len(offline.parse_wrapper(code).launches) for code in codes)


@every_lookup
def test_gpu(lookup):
    """The emitted kernels, interpreted, and how many there are."""
    with bridge.config.patch(strict=True, recheck=True):
        results, codes = run_emitted(lookup.function, lookup.inputs, bridge_backend)
    assert_eager(results, lookup, lookup.inputs)
    theirs = offline.compile_for_gpu(lookup.function, lookup.inputs).n_kernels
    assert (theirs, launches(codes)) == (lookup.inductor, lookup.bridge), bridge.report()


@every_lookup
def test_cpu(lookup, compiler):
    with bridge.config.patch(strict=True, recheck=True, force_fusion=True):
        results = compiler(lookup.function, backend="bridge")(*lookup.inputs)
    assert_eager(results, lookup, lookup.inputs)


@every_lookup
def test_positions_are_checked(lookup):
    """As often as Inductor compares them, at the least: once a load."""
    ours = offline.compile_for_gpu(lookup.function, lookup.inputs, compile_fx=bridge_backend)
    theirs = offline.compile_for_gpu(lookup.function, lookup.inputs)
    counts = [sum(k.source.count("tl.device_assert") for k in code.kernels) for code in (ours, theirs)]
    assert counts[0] >= 1 <= counts[1]
