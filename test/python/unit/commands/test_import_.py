"""Test what `bridge import` makes its inputs from, and how it compares outputs."""

from __future__ import annotations

import argparse
import sys
from types import SimpleNamespace

import pytest
import torch

from bridge.commands import import_
from bridge.lowering.affine_import import importing
from bridge.options import OptionError
from bridge.reasons import Reason, Unsupported


def parsed(arguments):
    """Return what the command's own parser makes of arguments."""
    parser = argparse.ArgumentParser()
    import_.register(parser)
    return parser.parse_args(arguments)


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / "a_program_to_compare_with.py"
    path.write_text("def double(x):\n    return 2 * x\ndef two(x):\n    return x, 2 * x\n")
    yield path
    sys.modules.pop(path.stem, None)


def test_an_argument_is_written_as_an_input():
    argument = SimpleNamespace(shape=(2, 3), dtype=torch.bfloat16)
    assert import_._spelled(argument) == "2x3:bfloat16"
    assert import_._spelled(SimpleNamespace(shape=(), dtype=torch.int64)) == "1:int64"


def test_equal_outputs_are_a_success(file, capsys):
    x = torch.arange(6.0)
    assert import_._check(f"{file}:double", [x], [(2 * x).reshape(2, 3)]) == 0
    assert import_._check(f"{file}:two", [x], [x, 2 * x]) == 0
    assert capsys.readouterr().out == "largest difference 0.00e+00\n" * 3


def test_another_value_is_a_failure(file, capsys):
    x = torch.ones(4)
    assert import_._check(f"{file}:double", [x], [torch.tensor([2.0, 2.0, 2.0, 2.5])]) == 1
    assert capsys.readouterr().out == "largest difference 5.00e-01\n"


def test_another_number_of_outputs_is_a_failure(file, capsys):
    x = torch.ones(4)
    assert import_._check(f"{file}:two", [x], [x]) == 1
    assert capsys.readouterr().out == "different: the function has 2 outputs of [(4,), (4,)]\n"


def test_outputs_of_another_size_are_a_failure(file, capsys):
    assert import_._check(f"{file}:double", [torch.ones(4)], [torch.ones(3)]) == 1
    assert capsys.readouterr().out == "different: the function has 1 outputs of [(4,)]\n"


def test_outputs_without_values_are_not_checked(file, capsys):
    assert import_._check(f"{file}:double", [torch.ones(4)], [torch.empty(4, device="meta")]) == 1
    assert capsys.readouterr().out.startswith("not checked")


def test_no_elements_are_equal(file, capsys):
    assert import_._check(f"{file}:double", [torch.ones(0)], [torch.ones(0)]) == 0


def test_a_function_has_to_be_named(file):
    with pytest.raises(ValueError, match="which function"):
        import_._check(str(file), [], [])


def test_what_can_be_shown_is_listed(capsys):
    given = parsed(["norm.mlir", "--plugin", "a.so", "--plugin", "b.so"])
    assert (given.plugin, given.target, given.show) == (["a.so", "b.so"], "cpu", None)
    with pytest.raises(SystemExit):
        parsed(["norm.mlir", "--show", "nothing"])
    assert "invalid choice: 'nothing'" in capsys.readouterr().err


def test_a_library_is_a_file_of_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.mlir").write_text("module {}")
    (tmp_path / "libmine.so").write_text("")
    given: dict = {}
    monkeypatch.setattr(importing, "compile_affine", lambda text, **keywords: given.update(keywords) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        import_.run(parsed(["a.mlir", "--plugin", "libmine.so"]))
    assert given["plugins"] == (str(tmp_path / "libmine.so"),)
    with pytest.raises(OptionError, match="no file 'libnot.so'"):
        import_.run(parsed(["a.mlir", "--plugin", "libnot.so"]))


def test_text_that_is_no_module_is_named_with_its_line(tmp_path):
    (tmp_path / "a.mlir").write_text("module {\n  not_an_operation\n}")
    with pytest.raises(ValueError, match=r"a.mlir:2:3: custom op 'not_an_operation' is unknown"):
        import_.run(parsed([str(tmp_path / "a.mlir")]))


def test_a_function_that_does_not_take_the_inputs_is_named_with_its_line(file):
    with pytest.raises(ValueError, match=r"py:1: double\(x\): too many positional arguments"):
        import_._check(f"{file}:double", [torch.ones(4), torch.ones(4)], [torch.ones(4)])


def test_a_refused_subscript_is_named_with_the_files_line(tmp_path):
    file = tmp_path / "a.mlir"
    file.write_text(
        """func.func @f(%a: memref<8xf32>, %b: memref<8xf32>) {
  affine.for %i = 0 to 8 {
    %0 = affine.load %a[%i + 1] : memref<8xf32>
    affine.store %0, %b[%i] : memref<8xf32>
  }
  return
}
"""
    )
    with pytest.raises(Unsupported, match=r"element \[8\] of argument 0, .* at \S*a.mlir:3:10$") as raised:
        import_.run(parsed([str(file)]))
    assert raised.value.reason is Reason.subscript_out_of_bounds


def test_a_module_without_functions_is_said_to_have_none(tmp_path):
    (tmp_path / "a.mlir").write_text("")
    with pytest.raises(ValueError, match=r"the module has no function$"):
        import_.run(parsed([str(tmp_path / "a.mlir")]))
