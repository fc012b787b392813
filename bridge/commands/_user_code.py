"""For the commands: run what a user wrote; where it ends the process, go on, so that what was asked is answered."""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from unittest import mock

from ..support.error_boundary import BUGS


class ProgramEnded(Exception):
    """Signal that the user's code ended the process, which nothing may do before the command has its result."""

    def __init__(self, how: str, success: bool = False):
        """Take how it ended; success: with status 0."""
        super().__init__(f"the program ended by {how}")
        self.success = success


@contextlib.contextmanager
def users_code(file: Path, arguments: Sequence[str]) -> Iterator[None]:
    """Have the block run code of a file as Python would: its folder on the path, its arguments in sys.argv.

    ProgramEnded where it ends the process: by sys.exit, by os._exit or by becoming another program.
    """
    folder = str(file.parent.absolute())
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(sys, "argv", [str(file), *arguments]))
        for name in ("_exit", "execv", "execve"):
            stack.enter_context(mock.patch.object(os, name, _guard(name, getattr(os, name))))
        sys.path.insert(0, folder)  # and it stays: a function may import when it is called
        try:
            yield
        except SystemExit as end:
            raise _ended(end) from end


def run_script(file: Path, arguments: Sequence[str]) -> ProgramEnded | Exception | None:
    """Run a script as `python file` does; return what ended it before its time, None for success."""
    try:
        with users_code(file, arguments):
            runpy.run_path(str(file), run_name="__main__")
    except ProgramEnded as end:
        return None if end.success else end
    except BUGS as error:
        return error
    return None


class _Leave(SystemExit):
    """Stand for a call that would have ended the process at once; its arguments: the function's name, and status."""


_end_process = os._exit


def _guard(name: str, function: Callable[..., object]) -> Callable[..., object]:
    """Return a function that does what `os._exit` and its like do in other processes only: in forked children."""
    process = os.getpid()

    def guarded(*arguments: object) -> object:
        if os.getpid() != process:
            return function(*arguments)
        if threading.current_thread() is not threading.main_thread():
            print(f"bridge: error: a thread of the program ended it by os.{name}", file=sys.stderr, flush=True)
            _end_process(2)
        raise _Leave(f"os.{name}", arguments[0])

    return guarded


def _ended(end: SystemExit) -> ProgramEnded:
    call, status = end.args if isinstance(end, _Leave) else ("sys.exit", end.code)
    return ProgramEnded(f"{call}({status!r})", success=status is None or status == 0)
