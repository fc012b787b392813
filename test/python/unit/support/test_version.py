"""Test the package's version: of what is installed, else of the source tree."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError

from paths import ROOT

import bridge
from bridge.support import version as module


def test_a_source_tree_has_that_of_its_project_file(monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(module, "version", missing)
    monkeypatch.setattr(module, "__file__", str(ROOT / "bridge" / "support" / "version.py"))
    found = module._version()
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", found)
    assert f'\nversion = "{found}"\n' in (ROOT / "pyproject.toml").read_text()


def test_an_installed_package_is_asked_by_the_name_of_its_distribution(monkeypatch):
    monkeypatch.setattr(module, "version", {"bridge-inductor": "9.8.7"}.__getitem__)
    assert module._version() == "9.8.7"


def test_the_package_has_it():
    assert bridge.__version__ == module.__version__ == module._version()
