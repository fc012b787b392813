"""Test the command `bridge bench`, without a GPU."""

from __future__ import annotations

import argparse

import pytest

from bridge.bench import command
from bridge.commands import bench
from bridge.reports import note_bugs


def run(*arguments):
    parser = argparse.ArgumentParser()
    bench.register(parser)
    return bench.run(parser.parse_args(arguments))


def test_the_cases_of_one_model_are_listed(capsys):
    assert run("--list", "--only", "llama3", "--modes", "decode", "--batches", "3") == 0
    printed = capsys.readouterr().out
    assert "llama3-8b" in printed and "decode" in printed and "qwen3" not in printed and "prefill" not in printed


@pytest.mark.expects_internal_error
def test_an_internal_error_is_a_failure(capsys):
    note_bugs(["a lost buffer"])
    assert run("--list", "--only", "llama3") == 1
    assert "internal_error: a lost buffer" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--findings", "--out"])
def test_a_place_that_cannot_be_written_is_said_before_anything_is_measured(flag, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "run", lambda arguments: pytest.fail("it was measured"))
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="exists|directory"):
        run(flag, str(tmp_path / "file" / "below"))
