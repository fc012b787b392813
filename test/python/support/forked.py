"""Run Python code in processes forked from one that has imported torch and Inductor, which takes a process ten seconds.

For tests to which it matters that a process is another one, and not what it imports. Variables that torch reads when it
is imported (TORCH_LOGS, TORCHINDUCTOR_FX_GRAPH_CACHE) come too late for it. Bridge is not imported before the code.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from unittest import mock

_PRELOADED = [
    "torch._dynamo",
    "torch._inductor.compile_fx",
    "torch._inductor.codegen.cpp",
    "torch._inductor.codegen.cuda_combined_scheduling",
    "torch._inductor.fx_passes.joint_graph",
    "torch._inductor.utils",
    "warmed",
]


@dataclass
class Forked:
    """Hold a process that runs, and the folder of what it prints."""

    process: BaseProcess
    folder: tempfile.TemporaryDirectory

    def ended(self, seconds: float) -> tuple[int, str, str]:
        """Return its exit status, and its output and errors; a process that goes on is killed."""
        self.process.join(seconds)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        with self.folder as folder:
            out, err = (Path(folder, name).read_text(encoding="utf-8") for name in ("stdout", "stderr"))
        assert self.process.exitcode is not None
        return self.process.exitcode, out, err


def start(code: str, environment: dict[str, str]) -> Forked:
    """Start a forked process that runs code with that environment."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    folder = tempfile.TemporaryDirectory()
    process = context.Process(target=_run, args=(textwrap.dedent(code), environment, folder.name))
    # The process that is forked starts with the first: a pool of compile processes would be no good after a fork.
    with mock.patch.dict(os.environ, TORCHINDUCTOR_COMPILE_THREADS="1", PYTHONPATH=environment["PYTHONPATH"]):
        process.start()
    return Forked(process, folder)


def _run(code: str, environment: dict[str, str], folder: str) -> None:
    for name, stream in (("stdout", sys.stdout), ("stderr", sys.stderr)):
        stream.flush()
        with open(Path(folder, name), "wb") as file:
            os.dup2(file.fileno(), stream.fileno())
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = environment["PYTHONPATH"].split(os.pathsep)
    exec(compile(code, "<forked>", "exec"), {"__name__": "__main__"})  # noqa: S102
