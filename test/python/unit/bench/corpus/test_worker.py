"""Test the process that makes a record of each pattern."""

from __future__ import annotations

import io
import json
import os
import sys

import pytest

from bridge.bench.corpus import compiled, measured, worker


@pytest.fixture
def output():
    """Restore the file descriptor 1, which a worker redirects."""
    kept = os.dup(1)
    yield
    os.dup2(kept, 1)
    os.close(kept)


def test_what_patterns_print_is_not_among_the_records(corpus, output, capfd, monkeypatch):
    folder = corpus.folder / "repros" / "canonical" / "loud_3"
    folder.mkdir()
    (folder / "repro.py").write_text("import os\nos.write(1, b'noise')\nraise ValueError('too loud')\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO("loud_3\nloud_3\n"))
    worker.main(str(corpus.folder), "offline")
    printed = capfd.readouterr()
    records = [json.loads(line) for line in printed.out.splitlines()]
    assert [(r["pattern"], r["status"], r["detail"]) for r in records] == [
        ("loud_3", "skipped", "ValueError: too loud")
    ] * 2
    assert printed.err.count("noise") == 2


def test_a_folder_without_patterns_is_refused(tmp_path, output):
    with pytest.raises(ValueError, match="no repros/canonical"):
        worker.main(str(tmp_path), "offline")


def test_the_device_decides_who_makes_the_records():
    assert worker._maker("offline") is compiled.compile_offline
    assert worker._maker("cuda") is measured.measure
