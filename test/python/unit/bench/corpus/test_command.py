"""Test `bridge bench --corpus`, on a corpus of two programs of our own in the folders that the public one has."""

from __future__ import annotations

import pytest

from bridge import cli
from bridge.bench.corpus.command import summary


@pytest.mark.in_turn(3)
def test_the_command_goes_on_where_it_was_stopped(corpus, tmp_path, capsys):
    command = ["bench", "--corpus", str(corpus.folder), "--workers", "1", "--out", str(tmp_path / "out")]
    assert cli.main([*command, "--only", "norm"]) == 0
    assert "norm_1 fused 2 -> 1 kernels" in capsys.readouterr().out
    assert cli.main(command) == 0
    printed = capsys.readouterr().out
    assert "[1/1] bad_2 skipped" in printed and "2 patterns: 1 fused, 1 skipped" in printed
    assert "| all | 2 | 2 | 1 |" in (tmp_path / "out" / "corpus.md").read_text()
    assert "norm_1\tfused\t2\t1\t" in (tmp_path / "out" / "corpus.tsv").read_text()


def test_a_failure_is_said_and_ends_red():
    lines = summary([{"pattern": "a", "status": "worse", "inductor": 1, "bridge": 2}])
    assert "FAILED a worse 1 -> 2 kernels" in lines


def test_records_are_cases_of_the_torture(corpus, monkeypatch):
    generator = pytest.importorskip("torture.corpus")
    monkeypatch.setenv("BRIDGE_CORPUS", str(corpus.folder))
    generator._corpus.cache_clear()
    assert generator.names("triton") == ["norm_1", "bad_2"] and generator.names("cpp") == []
    case = generator.run("norm_1", "triton")
    assert (case.verdict.name, case.figures["inductor"], case.figures["bridge"]) == ("fused", 2, 1)
    assert generator.run("bad_2", "triton").verdict.name == "skipped"
    generator._corpus.cache_clear()
