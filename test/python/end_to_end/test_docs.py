"""Test that what the documentation says is so.

Its code runs, its commands and files exist, its IR is the passes' own.
"""

import importlib
import re
import shlex
import subprocess
import textwrap
from pathlib import Path

import pytest
import torch
from paths import ROOT

import bridge
from bridge import inductor
from bridge.cli import main
from bridge.commands.options import reference

NATIVE = Path(bridge.__file__).parent / "_native"
BRIDGE_OPT = NATIVE / "bin" / "bridge-opt"
README = (ROOT / "README.md").read_text()
TOOLS = (ROOT / "docs" / "tools.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run(*command: str | Path, stdin: str | None = None) -> str:
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_python_snippets_run(compiler, capsys):
    namespace: dict = {}
    snippets = blocks("python")
    for snippet in snippets:
        exec(compile(snippet, "README.md", "exec"), namespace)  # noqa: S102
    assert len(snippets) == 3
    assert "of it Bridge." in capsys.readouterr().out
    assert namespace["report"].fused


def test_ir_is_what_the_passes_make_of_it():
    before, after = blocks("mlir")
    assert run(BRIDGE_OPT, "-", "--bridge-fuse", stdin=before) == run(BRIDGE_OPT, "-", stdin=after)


def commands(text: str) -> list[str]:
    return [line for block in blocks("sh", text) for line in block.splitlines()]


@pytest.mark.parametrize("command", [line for line in commands(README) if line.startswith("bridge-opt ")])
def test_bridge_opt_commands_work(command):
    assert run(BRIDGE_OPT, *shlex.split(command)[1:])


@pytest.mark.in_turn(2)
def test_commands_of_the_tools_work(compiler, monkeypatch, tmp_path, capsys):
    """Check that the documented commands work in their order, the README's among them."""
    (tmp_path / "build").mkdir()
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    todo = commands(TOOLS)
    assert {line for line in commands(README) if line.startswith("bridge ")} <= set(todo)
    for command in todo:
        program, *arguments = shlex.split(command)
        if program == "bridge-opt":
            run(BRIDGE_OPT, *[tmp_path / a if a.startswith("build/") else a for a in arguments])
            continue
        assert program == "bridge"
        assert main(arguments) == 0, command
        torch._dynamo.reset()
    assert (tmp_path / "build" / "swiglu.html").exists()


@pytest.mark.in_turn(2)
def test_snippets_of_the_tools_run(compiler, capsys):
    namespace: dict = {}
    for snippet in blocks("python", TOOLS):
        exec(compile(textwrap.dedent(snippet), "tools.md", "exec"), namespace)  # noqa: S102
    shown = capsys.readouterr().out
    (example,) = [block for block in blocks("text", TOOLS) if "for example" in block]
    for line in example.splitlines():
        assert line.strip() in shown


def test_every_option_and_reason_of_troubleshooting_exists():
    text = (ROOT / "docs" / "troubleshooting.md").read_text()
    reasons = set(re.findall(r"\[([a-z]+(?:_[a-z]+)+)\]", text))
    assert len(reasons) >= 3 and reasons <= set(bridge.Reason.__members__)
    assert set(re.findall(r'options=\{"(\w+)"', text)) <= set(bridge.Options.names())


def test_make_targets_exist():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = {line.split()[1] for line in README.splitlines() if line.startswith("    make ")}
    assert commands >= {"demo", "test", "build", "docs"}
    assert commands <= targets


def test_options_are_all_described():
    rows = re.findall(r"^\| `(\w+)` \| `(.+?)` \| (.+) \|$", README, re.MULTILINE)
    meanings = bridge.Options.meanings()
    assert rows == [(name, str(getattr(bridge.Options(), name)), meaning) for name, meaning in meanings.items()]


def test_configuration_reference_is_current():
    assert (ROOT / "docs" / "configuration.md").read_text() == reference(), "run `bridge options`"


def test_api_reference_is_current(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    assert (ROOT / "docs" / "api.md").read_text() == importlib.import_module("api").page(), "run `make docs`"


#: Of pyproject.toml: what is developed with, and the newest.
EXTRAS = "demo", "newest"


def pinned_torch(text: str, extra: str) -> list[str]:
    """Return the versions of torch that an extra names, that of the newest Python first."""
    (requirements,) = re.findall(rf"^{extra} = \[\n(.*?)^\]", text, re.DOTALL | re.MULTILINE)
    return re.findall(r"\"torch==([\d.]+)", requirements)


def test_torch_versions_are_those_of_pyproject():
    text = (ROOT / "pyproject.toml").read_text()
    bound = re.findall(r'"torch>=(\d+)\.(\d+),<(\d+)\.(\d+)"', text)
    pinned, newest = (pinned_torch(text, extra) for extra in EXTRAS)
    oldest, (major, too_new) = inductor.TORCH_VERSIONS
    assert bound == [(*map(str, oldest), str(major), str(too_new))]
    assert newest[0].startswith(f"{major}.{too_new - 1}.")
    assert f"torch {inductor.tested_versions()}" in README
    assert all(f"| {version} |" in README for version in pinned + newest)


def test_reasons_exist():
    section = README.split("## Reading the report")[1].split("\n## ")[0]
    spelled = {name for name in re.findall(r"[`\[]([a-z]+(?:_[a-z]+)+|atomics|random)[`\]]", section)}
    assert len(spelled) > 5
    assert spelled <= set(bridge.Reason.__members__)


def links() -> list[tuple[Path, str]]:
    found = [(page, target) for page in PAGES for target in re.findall(r"\]\(([^)#]+)\)", page.read_text())]
    return [(page, target) for page, target in found if "://" not in target]


@pytest.mark.parametrize(("page", "target"), links(), ids=lambda value: getattr(value, "name", value))
def test_links_lead_somewhere(page, target):
    assert (page.parent / target).exists()


def test_files_named_in_the_architecture_exist():
    text = "".join((ROOT / "docs" / f"{name}.md").read_text() for name in ("architecture", "extending"))
    named = set(re.findall(r"`((?:bridge|lowering|passes|test)/[\w/.-]+)`", text))
    assert len(named) > 20
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", ["passes.md", "dialect.md"])
def test_generated_reference_is_current(name):
    committed = (ROOT / "docs" / name).read_text()
    assert committed == (NATIVE / "docs" / name).read_text(), "run `make docs`"


def test_results_are_those_of_the_json_files(monkeypatch):
    """Check that `python benchmarks/results.py` would change nothing."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    results = importlib.import_module("results")
    pages = [page.read_text() for page in results.PAGES]
    shown = sum(page.count("<!-- results ") + page.count("<!-- models ") for page in pages)
    assert shown == len([*(ROOT / "docs" / "results").glob("*.json")])
    assert [*map(results.rendered, results.PAGES)] == pages
