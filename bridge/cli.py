"""`bridge`, or `python -m bridge`: the command line; the commands are the modules of `bridge.commands`."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Sequence
from types import ModuleType

from . import commands
from .options import OptionError
from .reasons import Unsupported
from .support.version import __version__


def command_modules() -> list[ModuleType]:
    """Return the modules of `bridge.commands`, sorted by the names of their commands."""
    names = [info.name for info in pkgutil.iter_modules(commands.__path__)]
    modules = [importlib.import_module(f"{commands.__name__}.{name}") for name in names if not name.startswith("_")]
    return sorted(modules, key=lambda module: module.NAME)


class _Version(argparse.Action):
    """Prints Bridge's version, and the versions of torch that it is tested with."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from .inductor import tested_versions  # loads torch

        print(f"Bridge {__version__}, tested with torch {tested_versions()}")
        parser.exit()


def make_parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser; only a command that argv names adds its arguments, as that may take imports."""
    parser = argparse.ArgumentParser(prog="bridge", description="What Bridge makes of PyTorch programs.")
    parser.add_argument("--version", action=_Version, nargs=0, help="show versions and exit")
    subparsers = parser.add_subparsers(required=True, metavar="command")
    for module in command_modules():
        summary = (module.__doc__ or "").strip().splitlines()[0].rstrip(".")
        own = subparsers.add_parser(module.NAME, help=summary, description=module.__doc__)
        own.formatter_class = argparse.RawDescriptionHelpFormatter
        if module.NAME in argv:
            module.register(own)
        own.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status; 2 for an error of the user's, which is printed on stderr."""
    argv = sys.argv[1:] if argv is None else argv
    arguments = make_parser(argv).parse_args(argv)
    try:
        return arguments.run(arguments)
    except (OptionError, Unsupported, ValueError, OSError) as error:
        print(f"bridge: error: {error}", file=sys.stderr)
        return 2
