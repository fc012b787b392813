"""For the commands: a user's file, a function in it, and what the function is called with."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Program:
    """A function of a file, and its arguments."""

    function: Callable[..., Any]
    arguments: list[Any]
    name: str


def add_arguments(parser: argparse.ArgumentParser, function_required: bool) -> None:
    """Add the arguments that `load` reads."""
    what = "file.py:function" if function_required else "file.py:function, or file.py for a script that compiles itself"
    parser.add_argument("program", help=what)
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="SHAPE[:DTYPE]",
        help="a tensor of random numbers, 2048x8192:bfloat16; once for each argument. Default: what the file's "
        "example_inputs() returns",
    )
    parser.add_argument("--dynamic", action="store_true", help="symbolic sizes, as torch.compile(dynamic=True)")


def split(program: str) -> tuple[Path, str | None]:
    """Return (file, name of the function or None); ValueError where there is no such file."""
    file, _, function = program.rpartition(":") if ":" in program else (program, "", "")
    if not file.endswith(".py"):
        file, function = program, ""
    if not Path(file).is_file():
        raise ValueError(f"there is no file {file}")
    return Path(file), function or None


def load(arguments: argparse.Namespace) -> Program:
    """Import the file and find the function; ValueError for what it does not have."""
    file, name = split(arguments.program)
    if name is None:
        raise ValueError(f"which function of {file}? write {file}:function")
    module = _import(file)
    function = getattr(module, name, None)
    if not callable(function):
        raise ValueError(f"{file} has no function {name!r}")  # noqa: TRY004
    return Program(function, _inputs(arguments.input, module, file), name)


def _import(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(file.stem, module)
    sys.path.insert(0, str(file.parent))
    spec.loader.exec_module(module)
    return module


def _inputs(given: list[str], module: ModuleType, file: Path) -> list[Any]:
    if given:
        return [make_tensor(text) for text in given]
    if not hasattr(module, "example_inputs"):
        raise ValueError(f"{file} has no example_inputs(); say --input SHAPE:DTYPE for each argument")
    return list(module.example_inputs())


def make_tensor(text: str) -> Tensor:
    """Return a tensor of random numbers for a text like `2048x8192:bfloat16`; ValueError for another form."""
    import torch  # weight: `bridge --help` is quick without it

    shape, _, kind = text.partition(":")
    dtype = getattr(torch, kind or "float32", None)
    if not isinstance(dtype, torch.dtype) or not all(part.isdecimal() for part in shape.split("x")):
        raise ValueError(f"an input is written 2048x8192:bfloat16, not {text!r}")
    sizes = [int(part) for part in shape.split("x")]
    generator = torch.Generator().manual_seed(0)
    if dtype.is_floating_point:
        return torch.randn(sizes, generator=generator).to(dtype)
    return torch.randint(0, 2 if dtype is torch.bool else 100, sizes, generator=generator).to(dtype)
