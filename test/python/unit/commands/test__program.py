"""Test what the commands read from a user's file."""

from __future__ import annotations

import argparse
import sys

import pytest
import torch

from bridge.commands import _program
from bridge.commands._user_code import ProgramEnded


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / "a_program_of_a_user.py"
    functions = "def double(x):\n    return 2 * x\ndef both(x, y):\n    return x\n"
    path.write_text(f"SIZE = 3\n{functions}def example_inputs():\n    return (SIZE, 4)\n")
    yield path
    sys.modules.pop(path.stem, None)


def load(program, *inputs, keyword=()):
    return _program.load(argparse.Namespace(program=program, input=list(inputs), keyword=list(keyword)))


def written(file, function):
    file.write_text(f"import torch\n{function}\n")
    return f"{file}:f"


def test_a_function_has_the_inputs_of_its_file(file):
    program = load(f"{file}:both")
    assert (program.name, program.bound()(4, 5), program.arguments) == ("both", 4, [3, 4])


def test_given_inputs_replace_those_of_the_file(file):
    (argument,) = load(f"{file}:double", "2x5:float16").arguments
    assert argument.shape == (2, 5) and argument.dtype == torch.float16


@pytest.mark.parametrize(
    ("name", "words"),
    [("", "which function of"), (":SIZE", "no function 'SIZE'; SIZE is of type int"), (":none", "no function 'none'$")],
)
def test_what_the_file_does_not_have_is_refused(file, name, words):
    with pytest.raises(ValueError, match=words):
        load(f"{file}{name}")


def test_a_file_without_inputs_asks_for_them(file):
    file.write_text("def double(x):\n    return 2 * x\n")
    with pytest.raises(ValueError, match=r"no example_inputs\(\)"):
        load(f"{file}:double")


@pytest.mark.parametrize("text", ["", "3y4", "2x", "-2"])
def test_a_tensor_of_another_form_is_refused(text):
    with pytest.raises(ValueError, match="2048x8192:bfloat16"):
        _program.make_tensor(text)


@pytest.mark.parametrize("kind", ["bf16", "no_dtype", "nn"])
def test_a_dtype_that_torch_has_not_is_named(kind):
    with pytest.raises(ValueError, match=f"no dtype '{kind}'"):
        _program.make_tensor(f"2x3:{kind}")


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-5", 1e-5), ("3", 3), ("None", None), ("True", True), ("gelu", "gelu"), ("(1, 2)", (1, 2)), ("a=b", "a=b")],
)
def test_keywords_are_what_python_would_read(file, text, value):
    program = load(written(file, "def f(x, *, mode): return mode"), "2", keyword=[f"mode={text}"])
    assert program.bound()(*program.arguments) == value
    assert program.bound().__name__ == "f"


def test_a_keyword_may_be_a_tensor(file):
    program = load(written(file, "def f(*, x): return x"), keyword=["x=2x3:float16"])
    assert program.arguments == []
    assert program.bound()().shape == (2, 3) and program.bound()().dtype == torch.float16


@pytest.mark.parametrize("text", ["mode", "=3"])
def test_a_keyword_of_another_form_is_refused(file, text):
    with pytest.raises(ValueError, match="--keyword is written NAME=VALUE"):
        load(written(file, "def f(x): return x"), "2", keyword=[text])


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("def f(x, w): return x", r"py:2: f\(x, w\): missing a required argument: 'w'"),
        ("def f(): return 1", r"py:2: f\(\): too many positional arguments"),
        ("class f(torch.nn.Module): pass", r"py:2: f is a class"),
    ],
)
def test_a_call_that_cannot_be_is_refused_with_its_place(file, function, words):
    with pytest.raises(ValueError, match=words):
        load(written(file, function), "2")


def test_a_module_is_called_as_its_forward_says(file):
    module = "class M(torch.nn.Module):\n    def forward(self, x, y):\n        return x + y\nf = M()"
    with pytest.raises(ValueError, match=r"py:3: f\(x, y\): missing a required argument: 'y'"):
        load(written(file, module), "2")
    assert load(written(file, module), "2", "2").name == "f"


def test_a_function_that_python_cannot_look_into_is_taken(file):
    assert load(written(file, "f = torch.relu"), "2").function is torch.relu


def test_options_of_the_command_line():
    given = argparse.Namespace(option=["max_nodes=3", "strict=1"])
    assert _program.options(given) == {"max_nodes": 3, "strict": True}
    with pytest.raises(ValueError, match="--option is written NAME=VALUE"):
        _program.options(argparse.Namespace(option=["strict"]))


def test_a_file_is_imported_with_its_own_arguments(file):
    written(file, "import sys\nARGUMENTS = sys.argv\ndef f(x): return ARGUMENTS")
    given = argparse.Namespace(program=f"{file}:f", input=["2"], keyword=[], script_arguments=["--small"])
    with _program.running(given) as program:
        assert program.function(1) == [str(file), "--small"]


def test_a_file_that_ends_the_process_is_an_error(file):
    given = argparse.Namespace(
        program=written(file, "import sys\nsys.exit(0)"), input=[], keyword=[], script_arguments=[]
    )
    with pytest.raises(ProgramEnded, match=r"sys.exit\(0\)"), _program.running(given):
        pass


@pytest.fixture
def package(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    folder = tmp_path / "a_package_of_a_user" / "inner"
    folder.mkdir(parents=True)
    for path in (folder, folder.parent):
        (path / "__init__.py").touch()
    (folder.parent / "scales.py").write_text("SCALE = 5\n\n\ndef imported(x): return x\n\n\nclass Imported: pass\n")
    yield folder
    for name in [name for name in sys.modules if name.startswith("a_package_of_a_user")]:
        del sys.modules[name]


def test_a_module_of_a_package_imports_relatively(package):
    file = package / "model.py"
    file.write_text("def f(x):\n    from ..scales import SCALE\n    return x * SCALE\n")
    program = load(f"{file}:f", "2")
    assert (program.bound()(3), program.function.__module__) == (15, "a_package_of_a_user.inner.model")


def test_a_module_without_relative_imports_needs_no_package(package):
    """Check that a module without relative imports is loaded alone: its package may fail, or have another's name."""
    (package / "__init__.py").write_text("import what_is_not_there\n")
    (package / "model.py").write_text("def f(x): return x\n")
    assert load(f"{package / 'model.py'}:f", "2").function.__module__ == "model"
    del sys.modules["model"]


@pytest.mark.parametrize(("name", "line"), [("imported", 4), ("Imported", 7)])
def test_what_a_file_imports_has_the_place_where_it_is_written(package, name, line):
    file = package / "model.py"
    file.write_text("from ..scales import imported, Imported\n")
    with pytest.raises(ValueError, match=rf"scales.py:{line}: {name}"):
        load(f"{file}:{name}", "2", "2")


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ("def example_inputs(): return torch.ones(3)", "a function that returns a Tensor; write a function that"),
        ("def example_inputs(): return {'x': 1}", "a function that returns a dict"),
        ("example_inputs = (1,)", "example_inputs is no function"),
    ],
)
def test_inputs_of_a_file_that_are_no_tuple_are_refused(file, inputs, words):
    with pytest.raises(ValueError, match=words):
        load(written(file, f"def f(x): return x\n{inputs}"))
