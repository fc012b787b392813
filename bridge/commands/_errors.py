"""For the commands: an error in one line, with the user's file and line where there is one."""

from __future__ import annotations

import re
import site
import sysconfig
import traceback
from pathlib import Path

from ..options import OptionError
from ..reasons import Unsupported
from ..support.os_errors import os_words
from ._user_code import ProgramEnded

#: A line that is longer is cut: torch prints whole tensors and tables.
LONGEST = 400

#: A frame, as Python and torch write it.
_FRAME = re.compile(r'File "(.+?)", line (\d+)')

#: What Dynamo wraps an error of an operation in: `got RuntimeError('...')`.
_WRAPPED = re.compile(r"got (\w+)\(([\"'])(.+?)\2\)")

#: Errors whose words say all: Bridge raises them for what it was asked.
_PLAIN = (OptionError, ProgramEnded, Unsupported, OSError)


def one_line(error: BaseException) -> str:
    """Return `file:line: Type: what is wrong`, without the place where no code of the user's is involved."""
    place, words = find_place(error), _words(error)
    if place is None and not isinstance(error, (*_PLAIN, ValueError)):
        words = f"{words} (an error inside of Bridge or torch; --traceback shows where)"
    line = words if place is None else f"{place[0]}:{place[1]}: {words}"
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 4]} ..."


def find_place(error: BaseException) -> tuple[str, int] | None:
    """Return (file, line) of the user's code that an error comes from; None where there is none."""
    if isinstance(error, SyntaxError) and error.filename is not None and error.lineno is not None:
        return shortened(error.filename), error.lineno
    told = [(file, int(line)) for file, line in _FRAME.findall(str(error))]
    raised = [(frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(error.__traceback__)]
    own = [(file, line) for file, line in [*raised, *told] if is_users(file)]
    if own:
        return shortened(own[-1][0]), own[-1][1]
    return find_place(error.__cause__) if error.__cause__ is not None else None


def is_users(file: str) -> bool:
    """Return False for what belongs to Python, to an installed package or to Bridge."""
    path = Path(file)
    return path.is_file() and not any(path.resolve().is_relative_to(folder) for folder in _others())


def _others() -> list[Path]:
    """Return the folders of code that is not the user's."""
    package = Path(__file__).parents[1]
    packages = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders = [package, package / "lowering", *map(Path, packages), *map(Path, site.getsitepackages())]
    return [folder.resolve() for folder in folders]


def shortened(file: str) -> str:
    """Return a file's path as the user would write it."""
    path, here = Path(file).absolute(), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else file


def _words(error: BaseException) -> str:
    """Return the error's own words, with its type but for those that say all."""
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}"
    text = os_words(error) if isinstance(error, OSError) else str(error).strip()
    wrapped = _WRAPPED.search(text)
    if wrapped is not None:
        return f"{wrapped[1]}: {_first_line(wrapped[3])}"
    if isinstance(error, _PLAIN) or (isinstance(error, ValueError) and find_place(error) is None):
        return _first_line(text)
    return f"{type(error).__name__}: {_first_line(text)}" if text else type(error).__name__


def _first_line(text: str) -> str:
    """Return the first line, with those that follow a colon at its end."""
    first, _, rest = text.replace("\\n", "\n").strip().partition("\n")
    return f"{first} {_first_line(rest)}" if first.endswith(":") and rest.strip() else first
