"""Run bridge-opt, for tests of IR that leaves Bridge."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path

import bridge

NATIVE = Path(bridge.__file__).parent / "_native"


def bridge_opt(*arguments: str | Path, stdin: str | None = None) -> subprocess.CompletedProcess:
    libraries = [Path(sysconfig.get_path("platlib")) / "llvm" / "lib", os.environ.get("LD_LIBRARY_PATH", "")]
    environment = {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(map(str, libraries))}
    command = [NATIVE / "bin" / "bridge-opt", *arguments]
    return subprocess.run(
        command, input=stdin, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
