"""For the commands: a user's file, a function in it, and what the function is called with."""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..options import read_option
from ._errors import shortened
from ._user_code import users_code

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Program:
    """Hold a function of a file, and its arguments."""

    function: Callable[..., Any]
    arguments: list[Any]
    name: str
    keywords: dict[str, Any] = field(default_factory=dict)

    def bound(self) -> Callable[..., Any]:
        """Return the function of the positional arguments alone."""
        if not self.keywords:
            return self.function
        function, keywords = self.function, self.keywords

        def call(*arguments: Any) -> Any:
            return function(*arguments, **keywords)

        call.__name__ = self.name
        call.__dict__["__wrapped__"] = function
        return call


def add_arguments(parser: argparse.ArgumentParser, function_required: bool) -> None:
    """Add the arguments that `load` and `running` read."""
    what = "file.py:function" if function_required else "file.py:function, or file.py for a script that compiles itself"
    parser.add_argument("program", help=f"{what}; what follows -- is in its sys.argv")
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="SHAPE[:DTYPE]",
        help="a tensor of random numbers, 2048x8192:bfloat16; once for each argument. Default: what the file's "
        "example_inputs() returns",
    )
    parser.add_argument(
        "--keyword",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a keyword argument of the function: a number, True, None, a text, or a tensor as of --input",
    )
    parser.add_argument("--dynamic", action="store_true", help="symbolic sizes, as torch.compile(dynamic=True)")
    parser.set_defaults(script_arguments=[])


def add_backward(parser: argparse.ArgumentParser) -> None:
    """Add the argument that has a function looked at with its backward."""
    parser.add_argument(
        "--backward",
        action="store_true",
        help="the function with its backward: gradients of its parameters, and of the inputs that want one; of all "
        "inputs where none does",
    )


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add what `options` reads."""
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of Bridge's, written as in its environment variable: --option max_nodes=32 (`bridge options` "
        "lists them)",
    )


def options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of Bridge's that were given; OptionError for an unknown one or a bad value."""
    pairs = (_pair(text, "--option") for text in arguments.option)
    return dict(read_option(name, value) for name, value in pairs)


def _pair(text: str, flag: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"{flag} is written NAME=VALUE, not {text!r}")
    return name, value


def split(program: str) -> tuple[Path, str | None]:
    """Return (file, name of the function or None); ValueError where there is no such file."""
    file, _, function = program.rpartition(":") if ":" in program else (program, "", "")
    if not file.endswith(".py"):
        file, function = program, ""
    if not Path(file).is_file():
        raise ValueError(f"there is no file {file}")
    return Path(file), function or None


@contextlib.contextmanager
def running(arguments: argparse.Namespace) -> Iterator[Program]:
    """Give the function that was named; the block runs it, and ends in ProgramEnded where that ends the process."""
    from ..diagnostics.torch_logging import without_errors  # weight: torch

    file, _ = split(arguments.program)
    quiet = contextlib.nullcontext() if getattr(arguments, "traceback", False) else without_errors()
    with quiet, users_code(file, arguments.script_arguments):
        yield load(arguments)


def load(arguments: argparse.Namespace) -> Program:
    """Import the file and find the function; ValueError for what it does not have, or is not called with."""
    module, function, name = find_function(arguments.program)
    keywords = {key: _value(text) for key, text in (_pair(one, "--keyword") for one in arguments.keyword)}
    file = split(arguments.program)[0]
    inputs = _inputs(arguments.input, module, file, needed=not keywords)
    return _checked(Program(function, inputs, name, keywords), file)


def call(program: str, inputs: list[Any]) -> Any:
    """Return what a function gives for inputs; ValueError where it does not take them."""
    _, function, name = find_function(program)
    return _checked(Program(function, inputs, name), split(program)[0]).function(*inputs)


def find_function(program: str) -> tuple[ModuleType, Callable[..., Any], str]:
    """Return (module, function, its name) of `file.py:function`; ValueError for what the file does not have."""
    file, name = split(program)
    if name is None:
        raise ValueError(f"which function of {file}? write {file}:function")
    module = _import(file)
    function = getattr(module, name, None)
    if isinstance(function, type):
        words = f"{name} is a class; name a function, or an object that the file makes of it"
        raise ValueError(f"{place(function, file)}: {words}")  # noqa: TRY004
    if not callable(function):
        other = f"; {name} is of type {type(function).__name__}" if hasattr(module, name) else ""
        raise ValueError(f"{file} has no function {name!r}{other}")  # noqa: TRY004
    return module, function, name


def refuse_arguments_of_functions(arguments: argparse.Namespace) -> None:
    """Raise ValueError for what a script is not called with: it makes its own inputs."""
    for flag in ("input", "keyword", "dynamic", "backward"):
        if getattr(arguments, flag, False):
            raise ValueError(f"--{flag} is for a function; name one: {arguments.program}:function")


def place(function: Any, file: Path) -> str:
    """Return `file:line` of a function or class, which the file may have imported; the file alone without a line."""
    try:
        source, line = inspect.getsourcefile(function), inspect.getsourcelines(function)[1]
    except (OSError, TypeError):
        return str(file)
    own = source is None or Path(source).resolve() == file.resolve()
    return f"{file if own else shortened(str(source))}:{line}"


def _checked(program: Program, file: Path) -> Program:
    """Return a program; ValueError for arguments that its function does not take, or that are missing."""
    called = getattr(program.function, "forward", program.function)  # of a module
    try:
        signature = inspect.signature(called)
    except (TypeError, ValueError):  # of what is not written in Python
        return program
    try:
        signature.bind(*program.arguments, **program.keywords)
    except TypeError as error:
        given = f"{len(program.arguments)} positional and {len(program.keywords)} keyword arguments"
        words = f"{program.name}{signature}: {error}; given are {given}"
        raise ValueError(f"{place(called, file)}: {words}") from None
    return program


def _import(file: Path) -> ModuleType:
    """Return the module of a file; where it imports relatively, it is imported as a part of its package."""
    folder, name = _package(file)
    if name != file.stem and _imports_relatively(file):
        sys.path.insert(0, str(folder))  # and it stays: a function may import when it is called
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(file.stem, module)
    spec.loader.exec_module(module)
    return module


def _package(file: Path) -> tuple[Path, str]:
    """Return (the folder that a file is imported from, its name there, with those of the packages that it is in)."""
    folder, names = file.resolve().parent, [file.stem]
    while (folder / "__init__.py").is_file():
        folder, names = folder.parent, [folder.name, *names]
    return folder, ".".join(names).removesuffix(".__init__")


def _imports_relatively(file: Path) -> bool:
    tree = ast.parse(file.read_bytes(), str(file))
    return any(isinstance(node, ast.ImportFrom) and node.level > 0 for node in ast.walk(tree))


def _inputs(given: list[str], module: ModuleType, file: Path, needed: bool) -> list[Any]:
    if given or not (needed or hasattr(module, "example_inputs")):
        return [make_tensor(text) for text in given]
    if not hasattr(module, "example_inputs"):
        raise ValueError(f"{file} has no example_inputs(); say --input SHAPE:DTYPE for each argument")
    inputs = module.example_inputs() if callable(module.example_inputs) else None
    if isinstance(inputs, list | tuple):
        return list(inputs)
    kind = "no function" if inputs is None else f"a function that returns a {type(inputs).__name__}"
    raise ValueError(f"{file}: example_inputs is {kind}; write a function that returns a tuple, an entry an argument")


def _value(text: str) -> Any:
    """Return what a text of the command line stands for: a literal of Python's, a tensor, or itself."""
    with contextlib.suppress(ValueError, SyntaxError):
        return ast.literal_eval(text)
    return make_tensor(text) if re.fullmatch(r"\d+(x\d+)*(:\w+)?", text) else text


def make_tensor(text: str) -> Tensor:
    """Return a tensor of random numbers for a text like `2048x8192:bfloat16`; ValueError for another form."""
    import torch  # weight: `bridge --help` is quick without it

    shape, _, kind = text.partition(":")
    dtype = getattr(torch, kind or "float32", None)
    if not all(part.isdecimal() for part in shape.split("x")):
        raise ValueError(f"an input is written 2048x8192:bfloat16, not {text!r}")
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"input {text!r}: torch has no dtype {kind!r}; others are float16, bfloat16, int64, bool")  # noqa: TRY004
    sizes = [int(part) for part in shape.split("x")]
    generator = torch.Generator().manual_seed(0)
    if dtype.is_floating_point:
        return torch.randn(sizes, generator=generator).to(dtype)
    return torch.randint(0, 2 if dtype is torch.bool else 100, sizes, generator=generator).to(dtype)
