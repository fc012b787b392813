"""Runs the passes in a helper process (option `isolate`), where a crash or a hang is one refusal and no more.

A process has one helper, started at the first request and again after a loss, which answers one request at a time.
What goes back and forth is pickled text: IR and a pipeline in, IR and remarks out.  The helper ends when the process
does, as it reads the end of its pipe then.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import tempfile
import threading
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import TypeAlias

from ..reasons import Reason, Unsupported
from ..support.os_errors import os_words
from .mlir_runtime import context, ir, load_pass_plugins, mlir_errors_are_bugs
from .pass_manager import Remark, transform

#: Seconds until an answer is no longer waited for: thousands of times what the passes take for the largest group.
TIMEOUT = 120.0

#: IR, a pipeline, the folder to print into, and libraries with passes.
Request: TypeAlias = tuple[str, str, "Path | None", tuple[str, ...]]

#: Arguments of an `Unsupported` or None, IR, and remarks.
Answer: TypeAlias = tuple["tuple[Reason, str] | None", str, list[Remark]]


class _Helper:
    """Hold a process that runs `serve`, and this end of the pipe to it."""

    def __init__(self) -> None:
        """Start the process; Unsupported(pass_crashed) if it cannot be started."""
        self.connection, theirs = Pipe()
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - it is there for as long as the process
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        try:
            with theirs:
                self.process = subprocess.Popen(
                    [*_COMMAND, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=self.errors,
                    stderr=self.errors,
                    env=environment,
                    pass_fds=[theirs.fileno()],
                )
        except OSError as error:
            raise Unsupported(Reason.pass_crashed, f"the helper process does not start: {os_words(error)}") from error

    def alive(self) -> bool:
        """Return True if the process has not ended."""
        return self.process.poll() is None

    def ask(self, request: Request) -> Answer:
        """Return the answer; Unsupported(pass_crashed) or Unsupported(pass_timeout) end the helper.

        So does an interrupt: the next request must not get the answer to this one.
        """
        answered = False
        try:
            self.connection.send(request)
            if not self.connection.poll(TIMEOUT):
                raise Unsupported(Reason.pass_timeout, f"the helper process gave no answer in {TIMEOUT:g} seconds")
            answer = self.connection.recv()
            answered = True
            return answer
        except (EOFError, OSError) as lost:
            self.end()
            raise Unsupported(Reason.pass_crashed, f"the helper process {self._fate()}") from lost
        finally:
            if not answered:
                self.end()

    def end(self) -> None:
        """Wait for the helper, which ends as its pipe is closed, or kill it."""
        self.connection.close()
        try:
            self.process.wait(1)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _fate(self) -> str:
        """Return how the process ended, and the last line that it wrote."""
        code = self.process.returncode
        how = f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        self.errors.seek(0)
        said = self.errors.read().decode(errors="replace").strip().splitlines()
        return f"{how}: {said[-1]}" if said else how


_COMMAND = [sys.executable or "python3", "-m", "bridge.affine.isolation"]

_lock = threading.Lock()
_helper: _Helper | None = None


def _forget() -> None:
    """Start anew in a forked child: the helper is the parent's, and another thread may have held the lock."""
    global _lock, _helper
    _lock, _helper = threading.Lock(), None


os.register_at_fork(after_in_child=_forget)


@atexit.register
def _end() -> None:
    """End the helper with this process."""
    if _helper is not None:
        _helper.end()


def transform_isolated(
    module: ir.Module, pipeline: str, tree: Path | None, plugins: tuple[str, ...] = ()
) -> list[Remark]:
    """Transform as `pass_manager.transform`; also Unsupported(pass_crashed) and Unsupported(pass_timeout).

    plugins: libraries with passes of the pipeline.
    """
    text = module.operation.get_asm(enable_debug_info=True)
    refusal, transformed, remarks = _ask((text, pipeline, tree, plugins))
    if refusal is not None:
        raise Unsupported(*refusal)
    _replace(module, transformed)
    return remarks


def _ask(request: Request) -> Answer:
    """Return the answer of the one helper, which is started if there is none."""
    global _helper
    with _lock:
        if _helper is None or not _helper.alive():
            _helper = _Helper()
        return _helper.ask(request)


def _replace(module: ir.Module, text: str) -> None:
    """Put the functions of the module in `text` in the place of those of `module`."""
    with mlir_errors_are_bugs(), module.context:
        transformed = ir.Module.parse(text)
        for function in list(module.body.operations):
            function.operation.erase()
        for function in list(transformed.body.operations):
            function.operation.detach_from_parent()
            module.body.append(function)


def serve(connection: Connection) -> None:
    """Answer requests until the pipe is closed: the side of the helper."""
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        connection.send(_answer(*request))


def _answer(text: str, pipeline: str, tree: Path | None, plugins: tuple[str, ...] = ()) -> Answer:
    """Run a pipeline on IR and return what goes back."""
    try:
        load_pass_plugins(plugins)
        with context():
            module = ir.Module.parse(text)
        remarks = transform(module, pipeline, tree)
    except Unsupported as refusal:
        return (refusal.reason, refusal.detail), "", []
    return None, module.operation.get_asm(enable_debug_info=True), remarks


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
