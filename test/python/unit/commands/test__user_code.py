"""Test code of a user's, which may end the process."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from bridge.commands import _user_code
from bridge.commands._user_code import ProgramEnded, run_script, users_code


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))

    def run(text, *arguments):
        (tmp_path / "script.py").write_text(text)
        return run_script(tmp_path / "script.py", arguments)

    return run


@pytest.mark.parametrize(
    "text",
    ["", "import sys; sys.exit()", "import sys; sys.exit(0)", "import os; os._exit(0)", "raise SystemExit(False)"],
)
def test_success(script, text):
    assert script(text) is None


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("import sys; sys.exit(3)", "sys.exit(3)"),
        ("import sys; sys.exit('broken')", "sys.exit('broken')"),
        ("import os; os._exit(4)", "os._exit(4)"),
        ("import os; os.execl('/bin/true', 'true')", "os.execv('/bin/true')"),
        ("import os; os.execle('/bin/true', 'true', {})", "os.execve('/bin/true')"),
    ],
)
def test_failures_by_their_way(script, text, how):
    ended = script(text)
    assert isinstance(ended, ProgramEnded) and str(ended) == f"the program ended by {how}"


def test_an_error_is_returned(script):
    assert isinstance(script("1 / 0"), ZeroDivisionError)


def test_a_script_is_main_and_has_its_arguments(script, capsys):
    before = sys.argv
    assert script("import sys\nif __name__ == '__main__': print(sys.argv[1:], sys.path[0])", "-n", "3") is None
    assert capsys.readouterr().out == f"['-n', '3'] {sys.path[0]}\n"
    assert sys.argv is before


def test_the_process_is_as_it_was(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = os._exit, os.execv, os.execve
    with pytest.raises(ProgramEnded), users_code(Path(__file__), []):
        sys.exit(0)
    assert (os._exit, os.execv, os.execve) == before


def test_a_forked_child_may_end(script):
    text = "import os\nchild = os.fork()\nif not child: os._exit(7)\n"
    assert script(text + "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7") is None


def test_a_thread_that_ends_the_process_ends_it_red(monkeypatch, capsys):
    """Check that a thread that ends the process ends it with status 2: an exception would end only the thread."""
    ended: list[int] = []
    monkeypatch.setattr(_user_code, "_end_process", ended.append)

    def end():
        with pytest.raises(SystemExit):
            _user_code._guard("_exit", print)(0)

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
    assert ended == [2] and "a thread of the program ended it" in capsys.readouterr().err
