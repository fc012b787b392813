"""Test what continuous integration runs.

`.ci/run`, with a stand-in for make, and what the Makefile gives its processes.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from paths import ROOT

#: Says what it was asked for; INSTALL, TEST and NEWEST are what its targets do.
MAKE = """#!/bin/bash
case "$1" in
  newest-torch) echo "pip says why"; eval "$INSTALL" ;;
  test) echo "make test"; eval "$TEST" ;;
  test-newest) echo "make test-newest"; eval "$NEWEST" ;;
esac
"""


@pytest.fixture
def run(tmp_path):
    make = tmp_path / "make"
    make.write_text(MAKE)
    make.chmod(0o755)

    def run(**variables: str) -> tuple[int, str]:
        path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "INSTALL": "", "TEST": "", "NEWEST": "", **variables}
        command = ["bash", str(ROOT / ".ci" / "run")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout

    return run


def _until(file: Path) -> str:
    """Return what waits in a shell until there is a file."""
    return f"until [ -e {file} ]; do sleep 0.01; done"


def test_all_is_run_and_what_pip_says_is_not_in_between(run):
    assert run() == (0, "make test\nmake test-newest\n")


def test_the_newest_torch_is_installed_while_the_tests_run(run, tmp_path):
    """Check that the installation and the tests run at once: each waits for the other, so in turn they never end."""
    one, other = tmp_path / "one", tmp_path / "other"
    status, _ = run(INSTALL=f"touch {one}; {_until(other)}", TEST=f"touch {other}; {_until(one)}")
    assert status == 0


def test_an_installation_that_takes_too_long_is_said_and_no_failure(run):
    status, shown = run(INSTALL="sleep 30", NEWEST_MINUTES="0.002")
    assert status == 0
    assert shown.splitlines()[1:] == [
        "The newest torch was not installed after 0.002 minutes: make test-newest did not run."
    ]


def test_an_installation_that_fails_is_red_and_says_why(run):
    assert run(INSTALL="exit 2") == (2, "make test\npip says why\n")


@pytest.mark.parametrize("target", ["TEST", "NEWEST"])
def test_tests_that_fail_are_red(run, target):
    assert run(**{target: "exit 2"})[0] == 2


def test_tests_that_fail_end_the_installation(run, tmp_path):
    """Check that failing tests end an installation that has begun.

    It must have begun: `timeout` does not end a process when it is told to end while it starts that process.
    """
    begun, written = tmp_path / "begun", tmp_path / "late"
    install = f"touch {begun}; sleep 1; touch {written}"
    assert run(INSTALL=install, TEST=f"{_until(begun)}; exit 2") == (2, "make test\n")
    time.sleep(1.5)
    assert not written.exists()


def test_processes_of_the_tests_find_torch_compiled():
    """Check that make lets Python keep its compiled files, also where the environment forbids it.

    Without them each process took 15 s longer to import torch.
    """
    recipe = 'shown: ; @echo "[$$PYTHONDONTWRITEBYTECODE]"'
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = ["make", "-s", "--no-print-directory", "--eval", recipe, "shown"]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
