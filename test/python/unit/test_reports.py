"""`bridge.report()`."""

from __future__ import annotations

import bridge


def test_loops_that_change_without_a_kernel_less_are_not_called_fused():
    entry = bridge.GroupReport("group0", ["op0"], 1, 1, fused=True)
    report = bridge.Report(groups=[entry], graphs=1, kernels_before=1, kernels_after=1)
    assert "fused, 1 -> 1" not in str(report)
    assert "other loops, 1 kernel as before" in str(report)
