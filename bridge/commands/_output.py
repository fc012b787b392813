"""For the commands: the standard output, whose reader may have left (`bridge explain ... | head -1`)."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path


def show(text: object, end: str = "\n") -> None:
    """Print; where nobody reads on, leave out the rest: the exit status is still that of the command."""
    try:
        print(text, end=end, flush=True)
    except BrokenPipeError:
        discard()


def flush() -> None:
    """Write what is not written yet, which Python would do later and complain about; what cannot be is left out."""
    try:
        show("", end="")
    except ValueError:  # closed by the user's program
        return
    except OSError:  # a full disk, which the command has said
        discard()


def discard() -> None:
    """Have what is still printed go nowhere; Python writes what it has not written yet when it ends."""
    try:
        descriptor = sys.stdout.fileno()
    except (AttributeError, io.UnsupportedOperation):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def counted(number: int, what: str) -> str:
    """Return a number of things in words: "1 kernel", "2 kernels"."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def check_writable(file: str | Path) -> None:
    """Make the folder of a file; OSError if it cannot be written, to be said before there is anything to write."""
    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    existed = path.exists()
    if existed and not path.is_file() and not path.is_dir():
        return  # The reader of a pipe would take this for the end.
    with path.open("a"):
        pass
    if not existed:
        path.unlink()


def without_worker_processes() -> None:
    """Have Inductor not start processes that compile for GPUs alone; to be called before its first compilation.

    On a busy machine they take a minute to start, and the process that ends waits for them, for up to 300 seconds.
    """
    os.environ.setdefault("TORCH_WARM_POOL", "0")


def silence_profiler() -> None:
    """Have torch's profiler not tell when it starts and ends; to be called before torch is imported."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
