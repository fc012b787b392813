"""Test what the commands print, also where nobody reads it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from processes import environment

from bridge.commands import _output


def test_text_is_printed(capsys):
    _output.show("one")
    _output.show("two", end="")
    assert capsys.readouterr().out == "one\ntwo"


def test_a_reader_that_left_is_no_error(monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as nobody:
        monkeypatch.setattr(sys, "stdout", nobody)
        _output.show("x" * 100000)
        _output.show("more")
        print("of somebody else")
        _output.flush()
        assert os.path.samestat(os.fstat(nobody.fileno()), os.stat(os.devnull))


def test_an_output_that_is_no_file_is_left_alone(capsys):
    _output.discard()
    _output.flush()
    print("said")
    assert capsys.readouterr().out == "said\n"


def test_a_file_that_can_be_written_has_its_folder_and_is_as_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kept.html").write_text("page")
    for file in ("a/b/c.html", "c.html", "kept.html"):
        _output.check_writable(file)
    assert (tmp_path / "a" / "b").is_dir() and not list((tmp_path / "a" / "b").iterdir())
    assert not (tmp_path / "c.html").exists() and (tmp_path / "kept.html").read_text() == "page"


@pytest.mark.parametrize("file", ["folder", "folder/page.html/one.html"])
def test_a_file_that_cannot_be_written_is_an_error(tmp_path, file):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "page.html").write_text("page")
    with pytest.raises(OSError, match="directory|exists"):
        _output.check_writable(tmp_path / file)


def test_a_pipe_is_not_opened_before_there_is_something_for_its_reader(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    _output.check_writable(tmp_path / "pipe")


def test_worker_processes_are_not_started_unless_the_user_wants_them(monkeypatch):
    monkeypatch.setenv("TORCH_WARM_POOL", "1")
    _output.without_worker_processes()
    assert os.environ["TORCH_WARM_POOL"] == "1"
    monkeypatch.delenv("TORCH_WARM_POOL")
    _output.without_worker_processes()
    assert os.environ["TORCH_WARM_POOL"] == "0"


def test_the_profiler_is_silenced_unless_the_user_wants_it(monkeypatch):
    monkeypatch.setenv("KINETO_LOG_LEVEL", "1")
    _output.silence_profiler()
    assert os.environ["KINETO_LOG_LEVEL"] == "1"
    monkeypatch.delenv("KINETO_LOG_LEVEL")
    _output.silence_profiler()
    assert os.environ["KINETO_LOG_LEVEL"] == "99"


def test_a_full_disk_is_an_error_of_one_line():
    command = [sys.executable, "-m", "bridge", "options"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, check=False, stdout=full, stderr=subprocess.PIPE, text=True, env=environment())
    assert done.returncode == 2
    assert done.stderr == "bridge: error: no space left on device\n"


@pytest.mark.in_turn(2)
def test_the_version_is_written_to_a_reader_that_left():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "bridge", "--version"]
    done = subprocess.run(command, check=False, stdout=writer, stderr=subprocess.PIPE, text=True, env=environment())
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
