"""Test lookups in inputs between kernels that become one: embeddings, rotations by position, losses of a target."""

from __future__ import annotations

import pytest
import torch
from emitted import run_emitted
from lookups import LOOKUPS, as_tuple, double, draw

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


@pytest.mark.one_in(2)
@every_lookup
def test_gpu(lookup):
    """Check results and number of the emitted kernels, in Triton's interpreter."""
    with bridge.config.patch(strict=True, recheck=True):
        results, codes = run_emitted(lookup.function, lookup.inputs, bridge_backend)
    assert_eager(results, lookup, lookup.inputs)
    theirs = offline.compile_for_gpu(lookup.function, lookup.inputs).n_kernels
    assert (theirs, launches(codes)) == (lookup.inductor, lookup.bridge), bridge.report()


@pytest.mark.one_in(3)
@every_lookup
def test_cpu(lookup, compiler):
    with bridge.config.patch(strict=True, recheck=True, force_fusion=True):
        results = compiler(lookup.function, backend="bridge")(*lookup.inputs)
    assert_eager(results, lookup, lookup.inputs)


@pytest.mark.parametrize("lookup, positions", [(LOOKUPS[0], 1), (LOOKUPS[-1], 2)])
def test_positions_are_checked(lookup, positions, compiler):
    """Check that positions are asserted to be in bounds, as Inductor asserts them, in C++ as in Triton."""
    kernels = offline.compile_for_gpu(lookup.function, lookup.inputs, compile_fx=bridge_backend).kernels
    assert sum(kernel.source.count("tl.device_assert") for kernel in kernels) == positions
    outside = [t if t.is_floating_point() else t + 1000 for t in lookup.inputs]
    with pytest.raises(RuntimeError, match="index out of bounds"):
        compiler(lookup.function, backend="bridge")(*outside)


def of_another_row(x):
    """Read the sum of any other row for each row: one kernel would still have to compute that sum."""
    index = x.argmax(-1) % x.shape[0]
    first, second = (x * x.sum(-1)[index][:, None]).chunk(2, -1)
    return first * second


def test_a_lookup_in_what_the_kernels_write_stays_apart():
    x = draw(7, 64)
    results, codes = run_emitted(of_another_row, [x], bridge_backend)
    torch.testing.assert_close(results, of_another_row(x))
    report = bridge.report()
    assert "indirect_index" in [r.reason.name for r in [*report.groups, *report.refusals] if r.reason], report
    assert launches(codes) > 1


def test_symbolic_rows():
    """Check a symbolic number of rows, which positions are compared with."""
    lookup = LOOKUPS[-1]
    results, codes = run_emitted(lookup.function, lookup.inputs, bridge_backend, dynamic=True)
    assert_eager(results, lookup, lookup.inputs)
    assert bridge.report().fused and launches(codes) < lookup.inductor + 1, bridge.report()
