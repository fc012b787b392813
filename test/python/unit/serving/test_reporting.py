"""Test what a server's log says of a graph, and the files with the reports."""

from __future__ import annotations

import logging

import pytest

from bridge import reports
from bridge.reports import Report
from bridge.serving.reporting import Place, log, tell, warn_off, warn_plain

PLACE = Place("graph 2 of 9", ("layers.0", "layers.1"), "1 to 8192 tokens")


@pytest.fixture(autouse=True)
def anew(monkeypatch, caplog):
    monkeypatch.setattr(reports, "_warned", set())
    caplog.set_level(logging.DEBUG, logger=log.name)


def test_a_graph_that_was_compiled(caplog, tmp_path):
    tell(PLACE, Report(graphs=1, kernels_before=3, kernels_after=2), tmp_path / "bridge")
    (record,) = caplog.records
    file = tmp_path / "bridge" / "graph_2_of_9_1_to_8192_tokens.txt"
    words = "graph 2 of 9, layers.0, layers.1, 1 to 8192 tokens: 3 -> 2 kernels, 0 of 0 groups fused"
    assert (record.levelno, record.getMessage()) == (logging.INFO, f"Bridge: {words}; report in {file}")
    assert file.read_text().startswith(f"{PLACE}\n\nbridge: 3 -> 2 kernels")


def test_a_graph_that_was_not(caplog, tmp_path):
    tell(PLACE, Report(), tmp_path)
    (record,) = caplog.records
    assert record.levelno == logging.DEBUG
    assert not list(tmp_path.iterdir())


def test_many_layers_are_named_by_the_first_and_the_last():
    assert str(Place("graph 1", tuple(f"layers.{i}" for i in range(32)))) == "graph 1, layers.0 to layers.31"


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path, recwarn):
    (tmp_path / "file").write_text("")
    for _ in range(2):
        tell(PLACE, Report(graphs=1), tmp_path / "file")
    (warning,) = recwarn
    assert str(warning.message).startswith("bridge cannot report: ")


def test_warnings_come_once(recwarn):
    for _ in range(2):
        warn_off("a fault")
        warn_plain("graph 1", "a fault")
    assert [str(warning.message).split(":")[0] for warning in recwarn] == [
        "bridge is off, and Inductor compiles without it",
        "bridge leaves graph 1 to Inductor, as it could not be compiled",
    ]
