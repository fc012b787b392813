"""`bridge`, or `python -m bridge`: the command line; the commands are the modules of `bridge.commands`."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
import traceback
from collections.abc import Collection, Sequence
from types import ModuleType
from typing import NoReturn

from . import commands
from .commands._errors import one_line
from .commands._output import discard, flush, show
from .options import from_environment, nearest
from .support.error_boundary import BUGS
from .support.version import __version__

#: What a shell makes of a program that SIGPIPE has ended.
_READER_LEFT = 141

#: And of one that SIGINT has ended.
_INTERRUPTED = 130


def command_modules() -> list[ModuleType]:
    """Return the modules of `bridge.commands`, sorted by the names of their commands."""
    names = [info.name for info in pkgutil.iter_modules(commands.__path__)]
    modules = [importlib.import_module(f"{commands.__name__}.{name}") for name in names if not name.startswith("_")]
    return sorted(modules, key=lambda module: module.NAME)


class _Version(argparse.Action):
    """Print Bridge's version, and the versions of torch that it is tested with."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from .inductor import tested_versions  # loads torch

        show(f"Bridge {__version__}, tested with torch {tested_versions()}")
        parser.exit()


class _Parser(argparse.ArgumentParser):
    """Parse arguments, with errors of one line."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong, and where to look, and end with status 2."""
        self.exit(2, f"{self.prog}: error: {message} ({self.prog} --help)\n")

    def unknown(self, arguments: Sequence[str]) -> NoReturn:
        """Say which arguments no command has, and which option the first of them may stand for."""
        given = next((argument for argument in arguments if argument.startswith("-")), arguments[0])
        options = [option for action in self._actions for option in action.option_strings if option != "-h"]
        self.error(_unknown("argument", given.partition("=")[0], options))


def _unknown(what: str, given: str, valid: Collection[str]) -> str:
    return f"unknown {what} {given!r}; {nearest(given, valid) or 'valid: ' + ', '.join(valid)}"


def make_parser(argv: Sequence[str]) -> _Parser:
    """Return the parser; only a command that argv names adds its arguments, as that may take imports."""
    parser = _Parser(prog="bridge", description="What Bridge makes of PyTorch programs.")
    parser.add_argument("--version", action=_Version, nargs=0, help="show versions and exit")
    subparsers = parser.add_subparsers(required=True, metavar="command")
    for module in command_modules():
        summary = (module.__doc__ or "").strip().splitlines()[0].rstrip(".")
        own = subparsers.add_parser(module.NAME, help=summary, description=module.__doc__)
        own.formatter_class = argparse.RawDescriptionHelpFormatter
        if module.NAME in argv:
            module.register(own)
        own.add_argument("--traceback", action="store_true", help="for an error also print where it came from")
        own.set_defaults(run=module.run, parser=own)
    return parser


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return the arguments; what follows `--` is for the user's script, where the command runs one."""
    ours, separator, theirs = _split(list(argv))
    parser = make_parser(ours)
    names = [module.NAME for module in command_modules()]
    command = next((argument for argument in ours if not argument.startswith("-")), names[0])
    if command not in names:
        parser.error(_unknown("command", command, names))
    arguments, others = parser.parse_known_args(ours)
    if others:
        arguments.parser.unknown(others)
    if separator and not hasattr(arguments, "script_arguments"):
        parser.error("this command runs no script that could take what follows --")
    if separator:
        arguments.script_arguments = theirs
    return arguments


def _split(argv: list[str]) -> tuple[list[str], bool, list[str]]:
    """Return (what stands before the first `--`, whether there is one, what follows)."""
    if "--" not in argv:
        return argv, False, []
    place = argv.index("--")
    return argv[:place], True, argv[place + 1 :]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status; 2 for an error, of which one line is printed on stderr."""
    arguments = parse(sys.argv[1:] if argv is None else argv)
    try:
        from_environment(os.environ)  # A variable that is misspelt is an error of every command.
        status: int = arguments.run(arguments)
        show("", end="")  # What the user's program has printed: a full disk is an error.
        return status
    except BrokenPipeError:
        discard()
        return _READER_LEFT
    except KeyboardInterrupt:
        print("bridge: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except BUGS as error:
        if arguments.traceback:
            traceback.print_exception(error)
        print(f"bridge: error: {one_line(error)}", file=sys.stderr)
        return 2
    finally:
        flush()
