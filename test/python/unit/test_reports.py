"""Test `bridge.report()`."""

from __future__ import annotations

import bridge
from bridge.reports import Done, write_with


def test_loops_that_change_without_a_kernel_less_are_not_called_fused():
    entry = bridge.GroupReport("group0", ["op0"], 1, 1, fused=True, done=Done(restructured=1))
    report = bridge.Report(groups=[entry], graphs=1, kernels_before=1, kernels_after=1)
    for text in (str(report), report.details()):
        assert "fused, 1 -> 1" not in text and "merged" not in text
        assert "1 kernel with other loops" in text


def test_what_was_done_adds_up():
    done = Done().with_band(3).with_band(2).with_band(1)
    assert str(done) == "5 kernels merged into 2; 1 kernel with other loops" and done.saved == 3
    assert str(Done()) == "nothing changed" and Done().saved == 0
    assert str(Done(launches=1)) == "launch shared with another group"
    assert Done(launches=1, joined=2).saved == 2
    divided = Done(merged=2, bands=1, divided=1)
    assert divided.saved == 0 and str(divided).endswith("; 1 kernel divided in two")


def test_a_group_that_is_withdrawn_claims_nothing():
    entry = bridge.GroupReport("group0", ["op0"], 2, 1, fused=True, done=Done(2, 1), bytes_before=8, bytes_after=4)
    withdrawn = entry.withdrawn("no code")
    assert (withdrawn.kernels_after, withdrawn.bytes_after, withdrawn.done) == (2, 8, Done())


def test_a_report_without_graphs_says_how_to_see_what_was_cached():
    assert "TORCHINDUCTOR_FORCE_DISABLE_CACHES=1" in str(bridge.Report())
    assert "TORCHINDUCTOR_FORCE_DISABLE_CACHES=1" in bridge.Report().details()


def test_a_prompt_shows_one_line():
    """Check that a prompt shows one line: the fields of a dataclass were pages."""
    groups = [bridge.GroupReport("group0", ["op0"] * 99, 2, 1, fused=True), bridge.GroupReport("group1", ["op1"], 1, 1)]
    report = bridge.Report(groups=groups, graphs=1, kernels_before=3, kernels_after=2)
    assert repr(report).startswith("<bridge.Report: 1 graph, 1 of 2 groups changed, 3 -> 2 kernels; print() ")
    for one in (report, bridge.Report()):
        assert len(repr(one)) < 120 and "\n" not in repr(one) and repr(one) != str(one)


def test_a_notebook_shows_the_first_screen():
    assert "compile anew" in bridge.Report()._repr_html_()


def test_the_writer_of_reports_can_be_set(monkeypatch):
    from bridge import reports

    monkeypatch.setattr(reports, "_writer", reports._writer)
    write_with(lambda report: "mine")
    assert str(bridge.Report()) == "mine"
