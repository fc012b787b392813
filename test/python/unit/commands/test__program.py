"""What the commands read from a user's file."""

from __future__ import annotations

import argparse
import sys

import pytest
import torch

from bridge.commands import _program


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / "a_program_of_a_user.py"
    path.write_text("SIZE = 3\ndef double(x):\n    return 2 * x\ndef example_inputs():\n    return (SIZE, 4)\n")
    yield path
    sys.modules.pop(path.stem, None)


def load(program, *inputs):
    return _program.load(argparse.Namespace(program=program, input=list(inputs)))


def test_a_function_has_the_inputs_of_its_file(file):
    program = load(f"{file}:double")
    assert (program.name, program.function(4), program.arguments) == ("double", 8, [3, 4])


def test_given_inputs_replace_those_of_the_file(file):
    (argument,) = load(f"{file}:double", "2x5:float16").arguments
    assert argument.shape == (2, 5) and argument.dtype == torch.float16


@pytest.mark.parametrize(
    ("name", "words"), [("", "which function of"), (":SIZE", "no function 'SIZE'"), (":none", "no function 'none'")]
)
def test_what_the_file_does_not_have_is_refused(file, name, words):
    with pytest.raises(ValueError, match=words):
        load(f"{file}{name}")


def test_a_file_without_inputs_asks_for_them(file):
    file.write_text("def double(x):\n    return 2 * x\n")
    with pytest.raises(ValueError, match=r"no example_inputs\(\)"):
        load(f"{file}:double")


@pytest.mark.parametrize("text", ["", "3y4", "2x", "-2", "2:no_dtype", "2:nn"])
def test_a_tensor_of_another_form_is_refused(text):
    with pytest.raises(ValueError, match="2048x8192:bfloat16"):
        _program.make_tensor(text)
