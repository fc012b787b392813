"""Test kernels and bytes of what a compiler generates code for."""

from __future__ import annotations

from explained import example_inputs, gated

from bridge import offline
from bridge.backend import bridge
from bridge.bench.observed import Counts, observed
from bridge.support import recorder


def test_both_compilers_are_counted(compiler):
    """Check kernels and bytes of both compilers: Inductor reads a row of 1024 twice in two kernels, Bridge once."""
    before, (x,) = recorder.recorder(), example_inputs()
    found = {}
    for name, backend in (("inductor", None), ("bridge", bridge)):
        with observed(name == "bridge") as counts:
            offline.compile_for_gpu(gated, [x], compile_fx=backend)
        found[name] = counts.kernels, counts.moved_bytes
    sums = 4 * x.shape[0]
    assert found == {
        "inductor": (2, 2 * x.nbytes + x.nbytes // 2 + 2 * sums),
        "bridge": (1, x.nbytes + x.nbytes // 2),
    }
    assert recorder.recorder() is before


def test_a_graph_that_is_scheduled_again_counts_once():
    counts = Counts()
    counts.graphs[0] = 3, 100
    counts.note(0, [])
    counts.graphs[1] = 2, 50
    assert (counts.kernels, counts.moved_bytes) == (2, 50)
