"""Test one process at a time on the GPU."""

from __future__ import annotations

from bridge.bench.corpus import exclusive


def test_code_runs_within_the_lock():
    held = []
    backend = exclusive.locked(lambda gm, inputs: lambda *args: held.append(exclusive._depth))
    backend(None, [])()
    assert held == [1] and exclusive._depth == 0
