"""Test the contracts of pyproject.toml about imports: they hold, and an import that breaks one is found."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

pytest.importorskip("importlinter", reason="import-linter is not installed")

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
BY_NAME = {contract["name"]: contract for contract in CONTRACTS}

#: lint-imports, of the environment that the tests run in.
COMMAND = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache"]


@pytest.fixture
def sources(tmp_path) -> Path:
    """Return a folder with a copy of the package, of which lowering/ is a part, and of its contracts."""
    links = shutil.ignore_patterns("__pycache__", "_native", "lowering")
    shutil.copytree(ROOT / "bridge", tmp_path / "bridge", ignore=links)
    shutil.copytree(ROOT / "lowering", tmp_path / "bridge" / "lowering", ignore=links)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(folder: Path) -> tuple[bool, str]:
    """Return (True if all contracts hold, what was printed)."""
    done = subprocess.run(COMMAND, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert "Contracts: " in done.stdout, done.stdout + done.stderr
    return done.returncode == 0, done.stdout


def module_file(folder: Path, module: str) -> Path:
    """Return the file of a module: of a package its __init__.py."""
    path = folder.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def violation(contract: dict[str, Any], folder: Path) -> list[tuple[str, str]]:
    """Return (importer, imported) of imports that together break a contract."""
    if contract["type"] == "forbidden":
        return [(plain(contract["source_modules"]), plain(contract["forbidden_modules"]))]
    if contract["type"] == "independence":
        first, second, *_ = contract["modules"]
        return [(first, second)]
    if contract["type"] == "acyclic_siblings":
        ancestor = plain(contract["ancestors"])
        first, second = children(module_file(folder, ancestor).parent)[:2]
        first, second = f"{ancestor}.{first}", f"{ancestor}.{second}"
        return [(first, second), (second, first)]
    if contract["type"] == "layers":
        container = contract.get("containers", [""])[0]
        highest, lowest = (".".join(filter(None, [container, tail(contract["layers"][i])])) for i in (0, -1))
        return [(lowest, highest)]
    raise NotImplementedError(f"no import is known that breaks a contract of type {contract['type']}")


def children(folder: Path) -> list[str]:
    """Return the names of the public modules and packages in a folder."""
    paths = folder.glob("[a-z]*")
    return sorted(path.stem for path in paths if path.suffix == ".py" or (path / "__init__.py").exists())


def plain(modules: list[str]) -> str:
    """Return the first module that is no pattern."""
    return next(module for module in modules if "*" not in module)


def tail(layer: str) -> str:
    """Return the first module of a layer, which may have several and may be optional."""
    return re.split(r"[|:]", layer)[0].strip().strip("()")


def test_all_contracts_hold(sources):
    kept, printed = lint(sources)
    assert kept, printed


@pytest.mark.parametrize("name", BY_NAME)
def test_an_import_that_breaks_a_contract_is_found(name, sources):
    for importer, imported in violation(BY_NAME[name], sources):
        with module_file(sources, importer).open("a", encoding="utf-8") as file:
            file.write(f"\nimport {imported}\n")
    kept, printed = lint(sources)
    assert not kept and f"{name} BROKEN" in printed, printed
