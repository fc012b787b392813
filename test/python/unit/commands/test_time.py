"""Test the command `bridge time`, with a stub for the measurements."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from typing import ClassVar

import explained
import pytest
import torch
from torch._inductor import async_compile

import bridge
from bridge.bench import measure, timing
from bridge.commands import time
from bridge.reports import note_bugs
from bridge.scheduling import hook


@dataclass
class Timing:
    """Stand for a measurement whose result is what was asked for."""

    name: str
    device: str
    faults: ClassVar[list[str]] = []

    def __str__(self):
        return f"{self.name} on {self.device}"

    def to_dict(self):
        return {"name": self.name}


@pytest.fixture
def given(monkeypatch):
    """Record what is measured, with what plan."""
    given: list = []

    def time_function(function, arguments, name, device, plan, backward=False):
        assert backward == name.endswith(" with its backward")
        given.append((function, arguments, plan, bridge.config.max_nodes, hook.current()))
        return Timing(name, device)

    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(timing, "time_function", time_function)
    monkeypatch.setattr(timing, "total", lambda timings: f"{len(timings)} in all")
    monkeypatch.setattr(measure, "warm_up", lambda device: given.append(device))
    return given


def run(*arguments):
    parser = argparse.ArgumentParser()
    time.register(parser)
    return time.run(parser.parse_args([*arguments, "--device", "cpu"]))


def test_a_function_is_measured_with_what_was_asked(given, capsys):
    program = f"{explained.__file__}:gated"
    assert (
        run(program, "--input", "2x8", "--rounds", "3", "--seconds", "5", "--option", "max_nodes=7", "--dynamic") == 0
    )
    function, (x,), plan, nodes, _ = given[0]
    assert (function.__name__, x.shape, nodes) == ("gated", (2, 8), 7)
    assert (plan.rounds, plan.seconds, plan.dynamic, plan.counted, plan.graphs) == (3, 5.0, True, True, True)
    run(program, "--no-graph")
    assert not given[-1][2].graphs
    assert capsys.readouterr().out == f"{program} on cpu\n" * 2


def test_a_function_is_measured_with_its_backward(given, capsys):
    program = f"{explained.__file__}:gated"
    assert run(program, "--input", "2x8", "--backward") == 0
    assert capsys.readouterr().out == f"{program} with its backward on cpu\n"


def test_a_script_takes_no_backward(given):
    with pytest.raises(ValueError, match="--backward is for a function"):
        run(explained.__file__, "--backward")


def test_the_graphs_of_a_script_are_measured(given, capsys, tmp_path, compiler):
    script = tmp_path / "script.py"
    script.write_text(
        "import bridge, sys, torch\nbridge.install()\nx = torch.ones(4)\n"
        "for f in (torch.sin, torch.cos):\n    torch.compile(f)(x)\nsys.exit(0)"
    )
    assert run(str(script)) == 0
    assert [one[0](torch.zeros(1))[0].item() for one in given] == [0.0, 1.0]
    assert [one[-1] for one in given] == [None, None], "Inductor is measured without what the script has installed"
    names = [f"{script}, graph {number} of 2, called once on cpu" for number in (1, 2)]
    assert capsys.readouterr().out == "\n\n".join([*names, "2 in all"]) + "\n"


def test_the_graphs_of_a_script_share_the_seconds(given, tmp_path, compiler, monkeypatch):
    """Check that the graphs of a script share the seconds: thirty graphs had half a minute each."""
    told: list = []
    monkeypatch.setattr(time.Progress, "__call__", lambda self, *state: told.append(state))
    script = tmp_path / "script.py"
    script.write_text("import torch\nfor f in (torch.sin, torch.cos):\n    torch.compile(f)(torch.ones(4))")
    assert run(str(script), "--seconds", "10") == 0
    assert [plan.seconds for _, _, plan, *_ in given] == [5.0, 5.0]
    given[1][2].progress("measuring", 3, 7)
    assert told[-1] == ("graph 2 of 2: measuring", 3, 7)


@pytest.mark.parametrize(("text", "error"), [("", ValueError), ("1 / 0", ZeroDivisionError)])
def test_a_script_without_a_graph_is_an_error(given, tmp_path, text, error):
    (tmp_path / "script.py").write_text(text)
    with pytest.raises(error, match="compiles nothing|division"):
        run(str(tmp_path / "script.py"))


def test_the_compilers_are_started_once_and_when_the_function_has_run(given):
    """Check that the compilers are started once, after the function has run.

    A wrong name, or a wrong shape, was reported after half a minute.
    """
    with pytest.raises(ValueError, match="has no function"):
        run(f"{explained.__file__}:nosuch")
    assert given == []
    run(f"{explained.__file__}:gated")
    plan = given.pop()[2]
    plan.prepare()
    plan.prepare()
    assert given == ["cpu"]


def test_on_a_cpu_no_process_is_started_that_compiles_for_gpus(given, monkeypatch):
    """Check that on a CPU no process is started that compiles for GPUs.

    The end of the process waited for them, for minutes on a busy machine.
    """
    monkeypatch.delenv("TORCH_WARM_POOL", raising=False)
    started: list = []
    monkeypatch.setattr(async_compile.AsyncCompile, "warm_pool", lambda: started.append(1))
    monkeypatch.setattr(async_compile.AsyncCompile, "wakeup", lambda: started.append(1), raising=False)
    run(f"{explained.__file__}:gated", "--input", "2x8")
    async_compile.maybe_warm_pool()
    assert started == []


def test_json(given, capsys):
    run(f"{explained.__file__}:gated", "--json")
    assert json.loads(capsys.readouterr().out) == [{"name": f"{explained.__file__}:gated"}]


def test_what_cannot_be_is_refused(given):
    with pytest.raises(ValueError, match="--rounds must be at least 1"):
        run(f"{explained.__file__}:gated", "--rounds", "0")
    with pytest.raises(bridge.OptionError, match="max_nodes"):
        run(f"{explained.__file__}:gated", "--option", "max_nods=1")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="torch finds no GPU"):
            time._device("cuda")


@pytest.mark.expects_internal_error
def test_an_internal_error_is_a_failure(given, capsys):
    note_bugs(["a lost buffer"])
    assert run(f"{explained.__file__}:gated") == 1
    assert "internal_error: a lost buffer" in capsys.readouterr().err


def test_a_fault_is_a_failure(given, capsys, monkeypatch):
    """Check that a fault makes the command fail: after a failed pass, Inductor was compared with itself."""
    monkeypatch.setattr(Timing, "faults", ["pass_failed"])
    assert run(f"{explained.__file__}:gated") == 1
    assert "bridge: [pass_failed] A pass" in capsys.readouterr().err
