"""Test `bridge bench` without a GPU.

What would be measured, its course with a stub for the GPU, results, comparison.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
from xml.etree import ElementTree

import pytest
import torch

from bridge.bench import cases, command, gpu_measurements, measure, zoo
from bridge.bench.conditions import Conditions
from bridge.bench.gpu_measurements import Launch
from bridge.bench.results import describe, load
from bridge.reports import Report


def test_subcommand(capsys):
    """Check the subcommand as `bridge.cli` finds it: a module of `bridge.commands`."""
    from bridge.commands import bench

    parser = argparse.ArgumentParser(prog=bench.NAME)
    bench.register(parser)
    assert bench.run(parser.parse_args(["--only", "dit", "--list"])) == 0
    assert capsys.readouterr().out == "dit-xl vision\ndit-xl training\n"


@pytest.mark.parametrize("given", [["bench", "--only", "bench"], ["--only", "bench"]])
def test_results_name_their_command_once(given):
    """Check that results name their command once: `bridge bench` has its name among its arguments, a script has not."""
    assert command._command(given) == "bridge bench --only bench"


def test_needs_a_gpu(capsys, monkeypatch):
    monkeypatch.setattr(gpu_measurements, "has_gpu", lambda: False)
    assert command.main(["--only", "dit"]) == 2
    assert "needs a GPU" in capsys.readouterr().err


class _Graph:
    """Stand for a CUDA graph: replaying it is the call itself."""

    def __init__(self, call):
        self.replay = call


def _small_case(architecture, module, mode, batch, sizes):
    return cases.make_case(architecture, module, mode, batch, cases.SMALL)


@pytest.fixture
def no_compiler(monkeypatch):
    """Disable compilation, for tests of what is said of a run."""
    monkeypatch.setattr(torch, "compile", lambda call, **options: call)


@pytest.fixture
def no_gpu(monkeypatch, compiler):
    """Set up a machine whose GPU is the CPU, whose models are small, and whose compilers only trace."""
    clock = iter(range(10**6))

    def build(architecture, dtype, device, small=False):
        return original_build(architecture, torch.float32, "cpu", small=True)

    original_build = zoo.Architecture.build
    monkeypatch.setattr(zoo.Architecture, "build", build)
    monkeypatch.setattr(command, "make_case", _small_case)
    monkeypatch.setattr(measure, "warm_up", lambda: None)
    monkeypatch.setattr(measure, "_backend", lambda compiler: "eager")
    monkeypatch.setattr(measure, "last_report", Report)
    monkeypatch.setattr(measure, "ROUNDS", 4)
    monkeypatch.setattr(measure, "WARM_UP", 1)
    monkeypatch.setattr(gpu_measurements, "has_gpu", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "no GPU")
    monkeypatch.setattr(gpu_measurements, "peak_bytes", lambda call: (call(), 0)[1])
    monkeypatch.setattr(gpu_measurements, "captured", lambda call, prepare: (_Graph(call), prepare()))

    def launches(call):
        call()
        return [Launch("triton_poi_fused_0", 2.0), Launch("gemm", 3.0)]

    def event_times(call, count, prepare):
        prepare()
        call()
        return [100.0 + next(clock) % 2] * count

    monkeypatch.setattr(gpu_measurements, "launches", launches)
    monkeypatch.setattr(gpu_measurements, "event_times", event_times)


@pytest.mark.in_turn(2)
def test_course_of_a_run(no_gpu, tmp_path, capsys):
    assert command.main(["--only", "dit", "--modes", "vision", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "[1/1, " in said
    run = load(tmp_path / "models.json")
    (only,) = run.results
    assert only.name == "dit-xl vision"
    assert only.inductor.launches == 2
    assert only.inductor.triton_launches == 1
    assert max(only.inductor.error, only.bridge.error) < 1e-5
    assert (tmp_path / "models.md").read_text() == describe(run)
    if importlib.util.find_spec("matplotlib") is not None:
        ElementTree.parse(tmp_path / "models.svg")
    assert command.main(["--only", "dit", "--modes", "vision", "--compare", str(tmp_path / "models.json")]) == 0


def arguments_of(*words):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(
    "words", [(), ("--dtype", "float16", "--dynamic"), ("--tokens", "100", "--images", "3", "--max-autotune")]
)
def test_conditions_are_those_of_the_command_line(no_gpu, monkeypatch, words):
    built, sizes, compiled = [], [], []
    small, small_case = zoo.Architecture.build, command.make_case

    def build(architecture, dtype, device, *_):
        built.append(dtype)
        return small(architecture, dtype, device)

    def make_case(*job):
        sizes.append(job[-1])
        return small_case(*job)

    def compile_(call, **options):
        compiled.append((options["dynamic"], options["mode"]))
        return call

    monkeypatch.setattr(zoo.Architecture, "build", build)
    monkeypatch.setattr(command, "make_case", make_case)
    monkeypatch.setattr(torch, "compile", compile_)
    assert command.main(["--only", "dit", "--modes", "vision", *words]) == 0
    expected = Conditions.asked_for(arguments_of(*words))
    assert built == [expected.dtype]
    assert sizes == [expected.sizes]
    assert compiled == [(expected.dynamic, expected.mode)] * 2


@pytest.mark.in_turn(2)
def test_decoding_may_be_repeated(no_gpu, tmp_path):
    """Check that decoding may be repeated: each step fills the cache further, and a run rewinds it in time."""
    pytest.importorskip("transformers")
    words = ["--only", "gemma3", "--modes", "decode", "--batches", "2", "--out", str(tmp_path)]
    assert command.main(words) == 0
    (only,) = load(tmp_path / "models.json").results
    assert only.name == "gemma3-4b decode b2"
    assert max(only.inductor.error, only.bridge.error) < 1e-5


@pytest.mark.in_turn(2)
def test_a_worse_run_exits_with_1(no_gpu, no_compiler, tmp_path):
    command.main(["--only", "dit", "--modes", "vision", "--out", str(tmp_path)])
    path = tmp_path / "models.json"
    old = json.loads(path.read_text())
    old["results"][0]["ratio"] = 0.5
    path.write_text(json.dumps(old))
    assert command.main(["--only", "dit", "--modes", "vision", "--compare", str(path)]) == 1


def test_a_budget_leaves_the_rest_out(no_gpu, tmp_path):
    words = ["--only", "dit", "--modes", "vision", "--budget-seconds", "0.000001", "--out", str(tmp_path)]
    assert command.main(words) == 0
    run = load(tmp_path / "models.json")
    assert run.results == []
    assert run.left_out == ["dit-xl vision"]


@pytest.mark.in_turn(2)
def test_a_failure_is_reported_and_the_rest_goes_on(no_gpu, no_compiler, tmp_path, monkeypatch):
    def broken(**values):
        raise AttributeError("no such model")

    zoo_of_two = [dataclasses.replace(zoo.VISION[-1], name="broken", make=broken), zoo.VISION[-1]]
    monkeypatch.setattr(zoo, "ZOO", zoo_of_two)
    assert command.main(["--modes", "vision", "--out", str(tmp_path)]) == 1
    run = load(tmp_path / "models.json")
    assert run.failed == {"broken vision": "AttributeError: no such model"}
    assert [r.name for r in run.results] == ["dit-xl vision"]


@pytest.mark.parametrize("number", [0, 1], ids=["bridge_first", "inductor_first"])
@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"bridge", "inductor"}, "Inductor, without Bridge: TypeError: no such index"),
        ({"inductor"}, "Inductor, without Bridge: TypeError: no such index"),
        ({"bridge"}, "with Bridge only: TypeError: no such index"),
    ],
)
def test_a_failure_is_of_the_compiler_that_fails_alone(monkeypatch, broken, said, number):
    def compile_case(case, compiler, plan):
        if compiler in broken:
            raise TypeError("no such index")
        return None, 1.0, None

    monkeypatch.setattr(measure, "_compile", compile_case)
    monkeypatch.setattr(measure, "_measure_alone", lambda case, compiler, *_: measure._attributed(case, compiler))
    case = cases.Case("any", "vision", 1, torch.clone, [torch.ones(1)])
    with pytest.raises(measure.CompilerFailed, match=said):
        measure.measure(case, number)
