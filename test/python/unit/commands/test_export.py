"""Test the command `bridge export`, with a stub for the compilation."""

from __future__ import annotations

import argparse

import explained
import pytest

from bridge.commands import export
from bridge.diagnostics import exporting

MODULE = "module {\n}\n"


@pytest.fixture
def given(monkeypatch):
    """Return the keywords that the compilation is asked with."""
    given: dict = {}

    def record(function, *arguments, **keywords):
        given.update(f=function, n=len(arguments), **keywords)
        return MODULE

    monkeypatch.setattr(exporting, "export", record)
    return given


def run(*arguments):
    parser = argparse.ArgumentParser()
    export.register(parser)
    return export.run(parser.parse_args(arguments))


def test_options_reach_the_compilation(given):
    run(f"{explained.__file__}:gated", "--input", "2x4", "--target", "cpu", "--locations")
    assert given.pop("f").__name__ == "gated"
    assert given == {"n": 1, "backend_target": "cpu", "dynamic": False, "locations": True}


def test_the_module_is_printed_as_it_is(given, capsys):
    assert run(f"{explained.__file__}:gated") == 0
    assert capsys.readouterr().out == MODULE


def test_a_file_takes_the_place_of_the_output(given, capsys, tmp_path):
    file = tmp_path / "no" / "folder" / "out.mlir"
    assert run(f"{explained.__file__}:gated", "-o", str(file)) == 0
    assert file.read_text() == MODULE and capsys.readouterr().out == ""


def test_a_file_without_a_function_is_refused(given):
    with pytest.raises(ValueError, match="which function"):
        run(explained.__file__)
    assert given == {}


def test_a_file_that_cannot_be_written_is_said_before_anything_is_compiled(given, tmp_path):
    with pytest.raises(IsADirectoryError):
        run(f"{explained.__file__}:gated", "-o", str(tmp_path))
    assert given == {}
