"""Test an error in one line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

from bridge.commands import _errors
from bridge.options import OptionError


def caught(function, *arguments):
    try:
        function(*arguments)
    except BaseException as error:  # noqa: BLE001
        return error
    raise AssertionError("no error")


def fails():
    raise KeyError("mine")


def in_other_code():
    json.loads("{")


LINE = fails.__code__.co_firstlineno + 1


def test_the_place_is_the_last_line_of_the_users(tmp_path, monkeypatch):
    monkeypatch.chdir(Path(__file__).parent)
    assert _errors.one_line(caught(fails)) == f"test__errors.py:{LINE}: KeyError: 'mine'"
    assert _errors.find_place(caught(in_other_code)) == ("test__errors.py", LINE + 4)
    monkeypatch.chdir(tmp_path)
    assert _errors.find_place(caught(fails)) == (__file__, LINE)


def test_what_torch_tells_of_the_users_code_counts():
    text = f'from user code:\n  File "{torch.__file__}", line 3, in g\n  File "{__file__}", line 7, in f\n'
    text = f"fake tensors: got RuntimeError('no such\\nshape')\n{text}"
    error = RuntimeError(text + f'  File "{torch.__file__}", line 5, in linear')
    assert _errors.one_line(error).endswith("test__errors.py:7: RuntimeError: no such")


def test_the_place_may_be_that_of_the_cause():
    error = OptionError("what is wrong")
    error.__cause__ = caught(fails)
    assert _errors.one_line(error).endswith(f"test__errors.py:{LINE}: what is wrong")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OptionError("bad option"), "bad option"),
        (ValueError("first\nsecond"), "first"),
        (ValueError("of a module:\nerror: here\nmore"), "of a module: error: here"),
        (FileNotFoundError(2, "No such file", "a.mlir"), "a.mlir: no such file"),
        (SyntaxError("never closed", ("/no/folder/a.py", 3, 1, "")), "/no/folder/a.py:3: SyntaxError: never closed"),
        (KeyError("x"), "KeyError: 'x' (an error inside of Bridge or torch; --traceback shows where)"),
        (AssertionError(), "AssertionError (an error inside of Bridge or torch; --traceback shows where)"),
    ],
)
def test_the_words_are_the_errors_own(error, line):
    assert _errors.one_line(error) == line


def test_a_line_has_an_end():
    line = _errors.one_line(ValueError("x" * 9999))
    assert len(line) == _errors.LONGEST and line.endswith(" ...")


def test_installed_code_is_not_the_users():
    assert not any(map(_errors.is_users, [torch.__file__, json.__file__, _errors.__file__, "<string>", "/no/file.py"]))
    assert _errors.is_users(__file__) and not _errors.is_users(sys.modules["pytest"].__file__)
