"""Test the command line."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import explained
import pytest

import bridge
from bridge import inductor
from bridge.cli import command_modules, main
from bridge.commands import _program

PROGRAM = explained.__file__


def test_commands_have_help(capsys):
    names = [module.NAME for module in command_modules()]
    assert {"explain", "export", "import", "options"} <= set(names)
    for name in names:
        with pytest.raises(SystemExit) as done:
            main([name, "--help"])
        assert done.value.code == 0
    assert "usage: bridge explain" in capsys.readouterr().out


def test_version(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    said = capsys.readouterr().out
    assert bridge.__version__ in said and said.endswith(f"tested with torch {inductor.tested_versions()}\n")


def test_console_script_is_installed():
    scripts = importlib.metadata.entry_points(group="console_scripts")
    found = [script.value for script in scripts if script.name == "bridge"]
    if not found:
        pytest.skip("the package is a source tree that is not installed")
    assert found == ["bridge.cli:main"]


class TestExplain:
    def test_function(self, capsys):
        assert main(["explain", f"{PROGRAM}:gated", "--no-registers"]) == 0
        assert "gated for cuda:sm_90: 2 -> 1 kernels; " in capsys.readouterr().out

    def test_inputs_of_the_command_line(self, capsys):
        arguments = ["--input", "32x2048:bfloat16", "--json", "--no-registers", "--target", "cuda:sm_80"]
        assert main(["explain", f"{PROGRAM}:gated", *arguments]) == 0
        (group,) = json.loads(capsys.readouterr().out)["groups"]
        assert group["statements"][0]["reduced"] == ["2048"]
        assert group["bytes_if_one"] == 32 * (2048 + 1024) * 2

    def test_script(self, compiler, capsys):
        assert main(["explain", PROGRAM, "--no-registers"]) == 0
        assert "explained.py for cuda:sm_90: 2 -> 1 kernels; " in capsys.readouterr().out

    def test_exit_status_for_ci(self, capsys):
        arguments = ["--no-registers", "--expect-kernels", "1"]
        assert main(["explain", f"{PROGRAM}:gated", *arguments]) == 0
        assert main(["explain", f"{PROGRAM}:next_row", *arguments]) == 1


class TestExportAndImport:
    def test_there_and_back(self, compiler, capsys, tmp_path):
        file = tmp_path / "out.mlir"
        assert main(["export", f"{PROGRAM}:gated", "--target", "cpu", "-o", str(file)]) == 0
        assert file.read_text().count("affine.for") == 4
        assert main(["import", str(file), "--check", f"{PROGRAM}:gated"]) == 0
        shown = capsys.readouterr().out
        assert "2 nests" in shown and "buf1: torch.float32 (64, 512)" in shown and "largest difference" in shown

    def test_for_a_gpu(self, capsys, tmp_path):
        file = tmp_path / "out.mlir"
        main(["export", f"{PROGRAM}:gated", "-o", str(file)])
        fuse = ["--pipeline", "builtin.module(bridge-fuse)", "--target", "cuda:sm_90", "--show", "kernels"]
        assert main(["import", str(file), *fuse]) == 0
        shown = capsys.readouterr().out
        assert shown.count("@triton.jit") == 1 and "1 nest in 1 generated kernel for" in shown

    def test_other_outputs_are_a_failure(self, compiler, capsys, tmp_path):
        file = tmp_path / "out.mlir"
        main(["export", f"{PROGRAM}:gated", "--target", "cpu", "-o", str(file)])
        file.write_text(file.read_text().replace("arith.mulf", "arith.maximumf", 1))
        assert main(["import", str(file), "--check", f"{PROGRAM}:gated"]) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["explain", "nothing.py"], "no file nothing.py"),
        (["explain", f"{PROGRAM}:nothing"], "no function 'nothing'"),
        (["explain", f"{PROGRAM}:gated", "--target", "tpu"], "unknown target"),
        (["explain", f"{PROGRAM}:gated", "--input", "3y4"], "2048x8192:bfloat16"),
        (["export", PROGRAM], "which function"),
        (["import", "nothing.mlir"], "nothing.mlir: no such file or directory"),
        (["import", "/"], "/: is a directory"),
        (["explain", f"{PROGRAM}:gated", "--option", "strct=1"], "did you mean 'strict'?"),
        (["explain", f"{PROGRAM}:gated", "--input", "4x8", "--input", "4"], "explained.py:8: gated(x): too many"),
    ],
)
def test_errors_of_the_user(arguments, words, capsys):
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["explian", "a.py:f"], "bridge: error: unknown command 'explian'; did you mean 'explain'?"),
        (["draw"], "bridge: error: unknown command 'draw'; valid: bench, explain, export, import, options, time"),
        (["explain", "a.py:f", "--expect-kernel", "x"], "argument --expect-kernels: invalid int value: 'x'"),
        (
            ["explain", "a.py:f", "--inptu=3x4"],
            "unknown argument '--inptu'; did you mean '--input'?",
        ),
        (["time", "a.py:f", "--quiet"], "unknown argument '--quiet'; valid: --help, --input, --keyword, "),
        (["export", "a.py:f", "b.py:g"], "unknown argument 'b.py:g'"),
        (["explain"], "the following arguments are required: program (bridge explain --help)"),
        ([], "the following arguments are required: command (bridge --help)"),
    ],
)
def test_arguments_that_no_command_has_are_one_line(arguments, words, capsys):
    with pytest.raises(SystemExit) as done:
        main(arguments)
    said = capsys.readouterr().err
    assert done.value.code == 2 and words in said and said.count("\n") == 1


@pytest.fixture
def users_file(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    yield lambda text: Path("users.py").write_text(text)
    sys.modules.pop("users", None)


ERRORS = {
    "of a shape": ("def f(x):\n    y = x.sum(-1)\n    return x @ x + y", "users.py:3: RuntimeError: "),
    "of the function": ("def f(x):\n    raise ValueError('too few')", "users.py:2: ValueError: too few"),
    "of the file": ("import torch\n1 / 0", "users.py:2: ZeroDivisionError: division by zero"),
    "of syntax": ("def f(x:\n", "users.py:1: SyntaxError: '(' was never closed"),
}


@pytest.mark.parametrize("command", ["explain", "export"])
@pytest.mark.parametrize(("text", "words"), ERRORS.values(), ids=ERRORS)
def test_an_error_of_the_users_file_is_one_line_with_its_place(users_file, command, text, words, capsys, compiler):
    users_file(text)
    assert main([command, "users.py:f", "--input", "3x4", "--target", "cpu"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"bridge: error: {words}") and said.count("\n") == 1


def test_a_traceback_is_there_when_it_is_asked_for(users_file, capsys):
    users_file(ERRORS["of the file"][0])
    assert main(["explain", "users.py:f", "--traceback"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("Traceback") and said.endswith(f"bridge: error: {ERRORS['of the file'][1]}\n")


def test_an_interrupt_is_one_line(users_file, capsys):
    users_file("raise KeyboardInterrupt")
    assert main(["explain", "users.py:f"]) == 130
    assert capsys.readouterr().err == "bridge: interrupted\n"


def test_what_follows_two_hyphens_is_the_scripts(users_file, capsys):
    users_file("import sys\nprint(sys.argv)")
    assert main(["explain", "users.py", "--target", "cpu", "--", "--epochs", "--", "3"]) == 0
    assert "['users.py', '--epochs', '--', '3']" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["options", "--", "3"])


def test_a_misspelt_variable_is_an_error_of_every_command(monkeypatch, capsys):
    monkeypatch.setenv("BRIDGE_STRCT", "1")
    assert main(["options"]) == 2
    assert "did you mean BRIDGE_STRICT?" in capsys.readouterr().err


@pytest.mark.in_turn(2)
def test_the_status_is_that_of_a_process_and_nobody_has_to_read_it_all(users_file, python):
    """Check the status of a process whose output goes into a pipe that nobody reads."""
    users_file("import sys\nsys.exit(0)")
    code = """
        import os, sys
        reader, writer = os.pipe()
        os.dup2(writer, 1)
        os.close(reader)
        from bridge.cli import main
        status = main(["explain", "users.py", "--target", "cpu", "--expect-kernels", "3"])
        os.dup2(2, 1) if status != 1 else None
        sys.exit(int(status != 1))
    """
    python(code)


def test_program_names():
    assert _program.split(f"{PROGRAM}:gated") == (Path(PROGRAM), "gated")
    assert _program.split(PROGRAM) == (Path(PROGRAM), None)
    tensor = _program.make_tensor("2x3:int64")
    assert tuple(tensor.shape) == (2, 3) and not tensor.is_floating_point()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["explain", "none.py"], "there is no file none.py"),
        (["explain", "none.py", "--option", "max_node=3"], "there is no file none.py"),
        (["explain", "{program}", "--option", "max_node=3"], "did you mean 'max_nodes'"),
        (["time", "none.py"], "there is no file none.py"),
        (["export", "none.py:f"], "there is no file none.py"),
        (["import", "none.mlir"], "none.mlir: no such file"),
    ],
)
def test_what_is_misspelt_is_said_before_torch_is_loaded(arguments, words):
    """Check that misspelt arguments are reported before torch is loaded: it took five seconds."""
    given = [argument.format(program=PROGRAM) for argument in arguments]
    code = f"import sys\nfrom bridge.cli import main\nstatus = main({given!r})\nprint(status, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "2 False\n" and words in done.stderr
