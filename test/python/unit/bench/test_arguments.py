"""Test the arguments of `bridge bench`."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.bench.arguments import MODES, add_arguments


@pytest.fixture
def parser():
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser


def test_all_modes_and_models_are_the_default(parser):
    given = parser.parse_args([])
    assert given.modes == ["prefill", "decode", "vision", "training"] == list(MODES)
    assert (given.only, given.batches, given.compiles, given.budget_seconds) == ([], [1, 16], 1, None)
    assert (given.corpus, given.shard, given.minutes, given.offline) == (None, "0/1", float("inf"), False)


def test_values_have_types(parser):
    given = parser.parse_args(["--batches", "2", "4", "--out", "results", "--minutes", "1.5", "--budget-seconds", "7"])
    assert given.batches == [2, 4] and given.out == Path("results")
    assert given.minutes == 1.5 and given.budget_seconds == 7.0


@pytest.mark.parametrize("arguments", [["--modes", "serving"], ["--batches", "one"], ["--only"]])
def test_bad_values_are_refused(parser, arguments, capsys):
    with pytest.raises(SystemExit) as done:
        parser.parse_args(arguments)
    assert done.value.code == 2 and f"argument {arguments[0]}" in capsys.readouterr().err


def test_torch_is_not_imported():
    code = "import sys, bridge.bench.arguments; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
