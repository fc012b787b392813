"""Test what is kept of a compilation while somebody is going to ask."""

from __future__ import annotations

import threading

import pytest

from bridge.diagnostics import recording
from bridge.diagnostics.recording import GroupRecord, Recording, recorded
from bridge.reports import GroupReport, Report


def test_a_recording_ends_with_its_block():
    with recorded() as outer:
        with pytest.raises(ValueError, match="planted"), recorded() as inner:
            assert recording.current() is inner
            raise ValueError("planted")
        assert recording.current() is outer
    assert recording.current() is None


def test_another_thread_records_nothing():
    seen = []
    with recorded():
        thread = threading.Thread(target=lambda: seen.append(recording.begin_group([])))
        thread.start()
        thread.join()
    assert seen == [None]


def test_stages_of_one_name_are_numbered():
    record = GroupRecord([], {})
    for text in "abc":
        record.add_stage("after-canonicalize.mlir", text)
    record.add_stage("fused.mlir", "d")
    assert record.stages == {
        "after-canonicalize.mlir": "a",
        "after-canonicalize.mlir (2)": "b",
        "after-canonicalize.mlir (3)": "c",
        "fused.mlir": "d",
    }


def test_a_recording_adds_up_its_reports():
    first = Report(groups=[GroupReport("a", ["op0"], 2, 1)], graphs=1, kernels_before=5, kernels_after=4)
    second = Report(groups=[GroupReport("b", ["op1"], 3, 3)], graphs=2, kernels_before=3, kernels_after=3)
    both = Recording(reports=[first, second])
    assert [group.name for group in both.groups] == ["a", "b"]
    assert (both.graphs, both.kernels_before, both.kernels_after) == (3, 8, 7)


def test_an_empty_schedule_leaves_no_report():
    with recorded() as found:
        recording.finish_graph([], Report(), 0)
        recording.watch([])
    assert found == Recording()


def test_guards_are_looked_for_where_a_group_did_not_fuse():
    record = GroupRecord([], {}, guards=["from before"])
    recording.finish_group(record, True, [], "no pipeline")
    assert record.guards == ["from before"] and record.sizes == {}
    record.add_stage("affine.mlir", "")
    recording.finish_group(record, False, [], "no pipeline")
    assert record.guards == []
