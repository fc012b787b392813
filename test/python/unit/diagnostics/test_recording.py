"""Test what is kept of a compilation while somebody is going to ask."""

from __future__ import annotations

import threading

import pytest

from bridge.diagnostics import recording
from bridge.diagnostics.recording import Buffer, GroupRecord, Recording, Statement, recorded
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


@pytest.mark.parametrize("with_stages", [True, False])
def test_a_part_of_a_group_has_its_own_kernels_and_buffers(with_stages):
    """Check that a record of some kernels numbers them anew, and calls lasting what the others use."""
    statements = [
        Statement("op0", 0, [], ["8"], [], ["x"], ["buf0"]),
        Statement("op1", 1, [], ["8"], [], ["buf0"], ["buf1"]),
        Statement("op2", 2, [], ["8"], [], ["buf1"], ["buf2"]),
        Statement("op3", 2, [], ["8"], [], ["buf2"], ["buf3"]),
    ]
    buffers = {name: Buffer("float32", ["8"], 32, name in ("buf0", "buf1", "buf2")) for name in ("x", "buf0", "buf1")}
    buffers |= {name: Buffer("float32", ["8"], 32, name == "buf2") for name in ("buf2", "buf3")}
    record = GroupRecord(statements, buffers, {"affine.mlir": "text"})
    part = record.of_part({"op1", "op2", "op3"}, with_stages=with_stages)
    assert [(one.name, one.kernel) for one in part.statements] == [("op1", 0), ("op2", 1), ("op3", 1)]
    assert {name for name, buffer in part.buffers.items() if buffer.temporary} == {"buf1", "buf2"}
    assert "x" not in part.buffers and part.stages == ({"affine.mlir": "text"} if with_stages else {})
