"""The command `bridge explain`, with a stub for the compilation."""

from __future__ import annotations

import argparse
from types import SimpleNamespace

import explained
import pytest

from bridge.commands import explain
from bridge.diagnostics import explaining


class Explanation:
    """Two kernels."""

    kernels_after = 2

    def __str__(self):
        return "in words"

    def to_json(self):
        return "{}"

    def save_html(self, file):
        return file


@pytest.fixture
def given(monkeypatch):
    """The keywords that the compilation is asked with."""
    given = SimpleNamespace()
    monkeypatch.setattr(explaining, "explain", lambda f, *a, **k: given.__dict__.update(f=f, **k) or Explanation())
    return given


def run(*arguments):
    parser = argparse.ArgumentParser()
    explain.register(parser)
    return explain.run(parser.parse_args([f"{explained.__file__}:gated", *arguments]))


def test_options_reach_the_compilation(given):
    run("--target", "cpu", "--dynamic", "--no-registers")
    assert given.f.__name__ == "gated"
    assert (given.backend_target, given.dynamic, given.registers) == ("cpu", True, False)
    run()
    assert (given.backend_target, given.dynamic, given.registers) == ("cuda:sm_90", False, True)


@pytest.mark.parametrize(("limit", "status"), [("0", 1), ("1", 1), ("2", 0), ("3", 0)])
def test_more_kernels_than_expected_are_a_failure(given, limit, status):
    assert run("--expect-kernels", limit) == status


def test_where_the_explanation_goes(given, capsys):
    assert run("--json", "--html", "a.html") == 0
    assert capsys.readouterr() == ("{}\n", "written: a.html\n")
    run()
    assert capsys.readouterr() == ("in words\n", "")
