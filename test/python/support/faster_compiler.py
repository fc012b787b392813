"""Make Inductor's C++ kernels in two thirds of the time: without debug symbols, linked with less."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

#: What a process that loads a kernel has loaded. A linker takes 0.4 s to read what these libraries define.
_LOADED = ("torch", "torch_cpu", "torch_python", "c10")

_COMPILER = """#!/bin/sh
exec {compiler} "$@" -g0
"""

# The names of what is needed, and not where they are: what is undefined is found when the kernel is loaded.
_LINKER = """#!/bin/sh
case " $* " in *" -ltorch_cpu "*) set -- -L{stubs} "$@" --no-as-needed {libraries} ;; esac
exec {linker} "$@"
"""


def make(folder: Path) -> dict[str, str]:
    """Write the faster compiler into a folder, and return the variables by which tests and their processes find it."""
    compiler, linker = shutil.which(os.environ.get("CXX", "g++")), shutil.which("ld.gold") or shutil.which("ld")
    if compiler is None or linker is None:
        return {}
    stubs, programs, linkers = (folder / name for name in ("stubs", "programs", "linkers"))
    for each in (stubs, programs, linkers):
        each.mkdir()
    for name in _LOADED:
        command = [linker, "-shared", "-soname", f"lib{name}.so", "-o", stubs / f"lib{name}.so"]
        subprocess.run([*command, _nothing(compiler, folder)], check=True)
    libraries = " ".join(f"-l{name}" for name in _LOADED)
    _script(programs / "g++", _COMPILER.format(compiler=shlex.quote(compiler)))
    linking = {"stubs": shlex.quote(str(stubs)), "libraries": libraries, "linker": shlex.quote(linker)}
    _script(linkers / "ld", _LINKER.format(**linking))
    found = {name: _first(folder, name) for name, folder in (("PATH", programs), ("COMPILER_PATH", linkers))}
    found |= {"CXX": str(programs / "g++")} if "CXX" in os.environ else {}
    return found if _links(folder, {**os.environ, **found}) else {}


def _links(folder: Path, environment: dict[str, str]) -> bool:
    """Return True if the compiler, with the faster linker, can link a C++ library: it may not find its own files."""
    compiler = environment.get("CXX", "g++")
    command = [compiler, "-shared", "-fPIC", "-x", "c++", "-", "-o", folder / "linked.so", "-fopenmp"]
    linked = subprocess.run(command, input=b"#include <string>", env=environment, capture_output=True, check=False)
    return linked.returncode == 0


def _nothing(compiler: str, folder: Path) -> Path:
    """Return an object file that defines nothing."""
    file = folder / "nothing.o"
    if not file.exists():
        subprocess.run([compiler, "-x", "c", "-c", "/dev/null", "-o", file], check=True)
    return file


def _script(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755)


def _first(folder: Path, variable: str) -> str:
    """Return the folders that a variable names, with another one before them."""
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get(variable)])])
