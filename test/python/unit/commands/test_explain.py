"""Test the command `bridge explain`, with a stub for the compilation."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import explained
import pytest

from bridge.bench import timing
from bridge.commands import explain
from bridge.commands._user_code import ProgramEnded
from bridge.diagnostics import explaining


class Explanation:
    """Stand for an explanation with two kernels."""

    name, graphs, kernels_after = "gated", 1, 2
    faults: ClassVar[list[tuple[str, str]]] = []

    def __str__(self):
        return "in words"

    def to_json(self):
        return "{}"

    def save_html(self, file):
        Path(file).write_text("page")
        return file


@pytest.fixture
def given(monkeypatch):
    """Return the keywords that the compilation is asked with."""
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
def test_more_kernels_than_expected_are_a_failure(given, limit, status, capsys):
    assert run("--expect-kernels", limit) == status
    said = f"bridge: --expect-kernels {limit} failed: gated: 2 kernels where at most {limit} were expected\n"
    assert capsys.readouterr().err == (said if status else "")


def test_a_fault_is_a_failure(given, monkeypatch, capsys):
    """Check that a fault makes the command fail: a pipeline that MLIR cannot read ended with status 0."""
    monkeypatch.setattr(Explanation, "faults", [("pass_failed", "no such pass")])
    assert run("--expect-kernels", "9") == 1
    assert capsys.readouterr().err == "bridge: [pass_failed] no such pass\n"


def test_nothing_to_count_is_a_failure(given, monkeypatch, capsys):
    monkeypatch.setattr(Explanation, "graphs", 0)
    assert run("--expect-kernels", "9") == 1
    assert "nothing was compiled" in capsys.readouterr().err
    assert run() == 0


def test_options_and_keywords_of_the_command_line(given):
    run("--option", "max_nodes=3", "--input", "4x8")
    assert given.options == {"max_nodes": 3}


@pytest.mark.parametrize(
    ("asked", "there", "timed"), [([], True, True), ([], False, False), (["--no-measure"], True, False)]
)
def test_times_are_measured_where_the_gpu_is_there(given, monkeypatch, asked, there, timed):
    monkeypatch.setattr(timing, "can_time", lambda target: there)
    monkeypatch.setattr(timing, "seconds_of_call", lambda *_: (2e-6, 1e-6))
    run("--target", "cuda:sm_90", *asked)
    assert given.measured == ((2e-6, 1e-6) if timed else None)


def test_what_is_not_there_cannot_be_measured(given, monkeypatch):
    monkeypatch.setattr(timing, "can_time", lambda target: False)
    with pytest.raises(ValueError, match="--measure: cuda:sm_90 is not this machine's"):
        run("--measure")


class TestScripts:
    """Test scripts in which nothing is compiled: how they end decides the status."""

    @pytest.fixture
    def script(self, tmp_path, monkeypatch):
        monkeypatch.setattr(sys, "path", list(sys.path))

        def run(text, *arguments):
            (tmp_path / "train.py").write_text(text)
            parser = argparse.ArgumentParser()
            explain.register(parser)
            given = parser.parse_args([str(tmp_path / "train.py"), "--target", "cpu", *arguments])
            given.script_arguments = ["--epochs", "3"]
            return explain.run(given)

        return run

    @pytest.mark.parametrize("end", ["", "import sys; sys.exit()", "import sys; sys.exit(0)", "import os; os._exit(0)"])
    def test_no_end_hides_that_nothing_was_compiled(self, script, end, capsys):
        assert script(end, "--expect-kernels", "9") == 1
        assert "nothing was compiled" in capsys.readouterr().err
        assert script(end) == 0
        assert "train.py:FUNCTION" in capsys.readouterr().err

    @pytest.mark.parametrize(
        "end", ["import sys; sys.exit(3)", "raise SystemExit('no')", "import os; os.execv('/bin/true', ['true'])"]
    )
    def test_a_script_that_fails_is_a_failure(self, script, end):
        with pytest.raises(ProgramEnded):
            script(end)

    def test_an_error_of_the_script_is_raised(self, script):
        with pytest.raises(ZeroDivisionError):
            script("1 / 0", "--expect-kernels", "9")

    def test_arguments_and_neighbours_are_the_scripts(self, script, capsys, tmp_path):
        (tmp_path / "neighbour_of_a_script.py").write_text("WORD = 'found'")
        script("import sys, neighbour_of_a_script as n; print(sys.argv[1:], n.WORD)")
        assert "['--epochs', '3'] found" in capsys.readouterr().out

    @pytest.mark.parametrize("given", [["--input", "3"], ["--keyword", "a=3"], ["--dynamic"]])
    def test_what_is_for_functions_is_refused(self, script, given):
        with pytest.raises(ValueError, match=f"{given[0]} is for a function"):
            script("", *given)

    def test_what_was_compiled_is_counted_before_the_script_ends(self, script, compiler, capsys):
        text = "import sys, torch, explained\n"
        text += "torch.compile(explained.gated)(*explained.example_inputs())\nsys.exit(0)"
        assert script(text, "--target", "cuda:sm_90", "--no-registers", "--expect-kernels", "0") == 1
        assert "1 kernel where at most 0" in capsys.readouterr().err


def test_where_the_explanation_goes(given, capsys, tmp_path):
    file = tmp_path / "no" / "folder" / "a.html"
    assert run("--json", "--html", str(file)) == 0
    assert capsys.readouterr() == ("{}\n", f"written: {file}\n") and file.exists()
    run()
    assert capsys.readouterr() == ("in words\n", "")


def test_a_file_that_cannot_be_written_is_said_before_anything_is_compiled(given, tmp_path):
    with pytest.raises(IsADirectoryError):
        run("--html", str(tmp_path))
    assert vars(given) == {}
