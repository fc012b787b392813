"""Test the interface of recorders, and what takes the stages that nobody is to see."""

from __future__ import annotations

import pytest

from bridge.diagnostics.dump import Dump
from bridge.diagnostics.recording import GroupRecord
from bridge.support import recorder


def public(protocol: type) -> set[str]:
    return {name for name in vars(protocol) if not name.startswith("_")}


def never():
    raise AssertionError("a text was made that nobody wants")


def test_nothing_is_taken_and_no_text_is_made():
    stages = recorder.NO_STAGES
    assert not stages.active and stages.folder is None
    assert stages.write("affine.mlir", never) is None
    assert stages.loop_bodies("loop-ir.txt", iter(never, None)) is None
    with stages.pass_tree() as tree:
        assert tree is None


def test_an_error_inside_of_the_pass_tree_is_not_swallowed():
    with pytest.raises(ValueError, match="planted"), recorder.NO_STAGES.pass_tree():
        raise ValueError("planted")


def test_implementations_have_what_the_protocols_name():
    assert {"write", "active", "folder"} <= public(recorder.Stages)
    for stages in (recorder.NO_STAGES, Dump(None, "op0")):
        assert [name for name in public(recorder.Stages) if not hasattr(stages, name)] == []
    assert [name for name in public(recorder.GroupRecord) if not hasattr(GroupRecord([], {}), name)] == []


def test_the_recorder_is_the_last_that_was_set(monkeypatch):
    monkeypatch.setattr(recorder, "_recorder", None)
    with pytest.raises(AssertionError, match="when it is imported"):
        recorder.recorder()
    first, second = object(), object()
    recorder.use(first)
    recorder.use(second)
    assert recorder.recorder() is second
