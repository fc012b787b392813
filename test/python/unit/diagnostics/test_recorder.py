"""Test what compilations tell, sent on to dumps and to what explains them."""

from __future__ import annotations

import inspect

import pytest

from bridge.diagnostics import recorder as sending
from bridge.diagnostics import recording
from bridge.diagnostics.recorder import Diagnostics
from bridge.support import recorder


@pytest.mark.parametrize("name", [name for name in vars(recorder.Recorder) if not name.startswith("_")])
def test_implements_the_interface(name):
    wanted, own = (inspect.signature(getattr(kind, name)) for kind in (recorder.Recorder, Diagnostics))
    assert list(own.parameters) == list(wanted.parameters)


def test_records_only_while_somebody_asks():
    told = Diagnostics()
    assert not told.is_recording() and told.begin_group([]) is None
    with recording.recorded():
        assert told.is_recording()
    assert not told.is_recording()


def test_stages_go_to_the_record_and_to_the_folder(tmp_path):
    record = recording.GroupRecord([], {})
    stages = Diagnostics().open_stages("op0_op1", str(tmp_path), record)
    assert stages.active
    written = stages.write("affine.mlir", lambda: "module {}")
    assert written.name == "00-affine.mlir" and written.read_text() == "module {}"
    assert written.parent == stages.folder and stages.folder.parent == tmp_path
    assert record.stages == {"affine.mlir": "module {}"}


def test_a_record_without_a_folder_takes_the_stages():
    record = recording.GroupRecord([], {})
    stages = Diagnostics().open_stages("op0", None, record)
    assert stages.active and stages.write("fused.mlir", "text") is None
    assert record.stages == {"fused.mlir": "text"}


def test_register_makes_it_what_compilations_tell(monkeypatch):
    monkeypatch.setattr(recorder, "_recorder", None)
    sending.register()
    assert isinstance(recorder.recorder(), Diagnostics)
