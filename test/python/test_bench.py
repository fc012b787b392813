"""`bridge bench` without a GPU: what would be measured, its course with a stub for the GPU, results, comparison."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import re
from functools import partial
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
import torch
from torch._inductor.codecache import PyCodeCache
from torch._inductor.runtime.triton_heuristics import CachingAutotuner

from bridge import inductor
from bridge.bench import cases, command, findings, gpu_measurements, measure, zoo
from bridge.bench.arguments import MODES
from bridge.bench.gpu_measurements import Launch
from bridge.bench.results import Result, Run, Side, describe, half_range, load, regressions, summary
from bridge.reasons import Reason
from bridge.reports import GroupReport, Report


def side(**values) -> Side:
    return dataclasses.replace(Side(20, 10, 100.0, 50.0, 8.0, 1 << 20, 1e-2), **values)


def result(model="llama", mode="prefill", batch=1, ratio=0.9, **values) -> Result:
    whole = Result(model, mode, batch, side(), side(triton_launches=8), ratio, 0.01, 0.8, 0.02, 0.3, {"aliasing": 1})
    return dataclasses.replace(whole, **values)


def run_of(*results: Result, **values) -> Run:
    return Run({"GPU": "none"}, list(results), **values)


def test_a_saved_run_is_loaded_as_it_was(tmp_path):
    run = run_of(result(), result("swin", "vision", 64), failed={"bert prefill": "RuntimeError: no"}, left_out=["vit"])
    run.save(tmp_path / "run.json")
    assert load(tmp_path / "run.json") == run


@pytest.mark.parametrize("text", ["[]", "{}", '{"heading": {}, "results": [{"model": "llama"}]}'])
def test_something_else_is_no_run(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ValueError, match="is not a result"):
        load(tmp_path / "run.json")


def test_the_same_again_is_no_regression():
    assert regressions(run_of(result()), run_of(result())) == []


def test_noise_is_no_regression():
    assert regressions(run_of(result(ratio=0.919)), run_of(result(ratio=0.9))) == []


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"ratio": 0.93}, "time over Inductor's was 0.900 and is 0.930"),
        ({"triton_ratio": 0.85}, "Triton time"),
        ({"bridge": side(triton_launches=9)}, "2 Triton launches were saved and 1 are"),
        ({"bridge": side(triton_launches=8, peak_bytes=2 << 20)}, "peak memory"),
        ({"bridge": side(triton_launches=8, error=2e-2)}, "error against eager"),
    ],
)
def test_what_got_worse_is_said(values, words):
    (line,) = regressions(run_of(result(**values)), run_of(result()))
    assert line.startswith("llama prefill: ")
    assert words in line


def test_a_case_that_fails_now_is_a_regression():
    now = run_of(failed={"llama prefill": "RuntimeError: no", "new prefill": "RuntimeError: no"})
    assert regressions(now, run_of(result())) == ["llama prefill: failed, RuntimeError: no"]


def test_summary_means_are_geometric():
    text = summary([result(ratio=0.5), result("swin", "vision", 64, ratio=2.0)])
    assert "| total time, everything | 2 | 1.000 | 2.000 (swin vision) |" in text
    assert "| total time, vision | 1 | 2.000 |" in text
    assert "| Triton launches, 20 -> 16 | 2 | 0.800 | |" in text
    assert "decoding" not in text


def test_half_range_ignores_outliers():
    assert half_range([1.0, 1.0, 1.0, 1.0, 9.0]) < half_range([1.0, 1.1, 1.2, 1.3, 1.4]) * 50
    assert half_range([1.0] * 9 + [100.0]) == 0


def options(*words: str):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(words)


def names(*words: str) -> list[str]:
    return [command._job_name(job) for job in command.jobs(options(*words))]


def test_jobs_have_larger_batches_last():
    pytest.importorskip("transformers")
    chosen = names("--only", "llama", "dit", "--batches", "1", "16")
    assert chosen == ["llama3-8b prefill", "llama3-8b decode b1", "dit-xl vision", "llama3-8b decode b16"]


def test_jobs_of_one_mode():
    assert names("--only", "dit", "--modes", "vision") == ["dit-xl vision"]
    assert names("--only", "dit", "--modes", "decode") == []


def test_subcommand(capsys):
    """As `bridge.cli` finds it: a module of `bridge.commands`."""
    from bridge.commands import bench

    parser = argparse.ArgumentParser(prog=bench.NAME)
    bench.register(parser)
    assert bench.run(parser.parse_args(["--only", "dit", "--list"])) == 0
    assert capsys.readouterr().out == "dit-xl vision\n"


def test_every_mode_of_every_model_is_a_mode():
    assert {mode for a in zoo.ZOO for mode in a.modes} == set(MODES)
    assert len({a.name for a in zoo.ZOO}) == len(zoo.ZOO) == 17


def test_needs_a_gpu(capsys, monkeypatch):
    monkeypatch.setattr(gpu_measurements, "has_gpu", lambda: False)
    assert command.main(["--only", "dit"]) == 2
    assert "needs a GPU" in capsys.readouterr().err


class _Graph:
    """What stands for a CUDA graph: the call itself."""

    def __init__(self, call):
        self.replay = call


def tuned_kernel(folder, name, body, launcher):
    """What torch's runtime has for a kernel that was called."""
    path = folder / f"{name}.py"
    path.write_text(f"def {name}(x):\n    {body}\n")
    kernel = object.__new__(CachingAutotuner)
    kernel.filename, kernel.inductor_meta, kernel.launchers = str(path), {"kernel_name": name}, [launcher]
    return kernel


def test_a_kernel_of_both_has_one_configuration(monkeypatch, tmp_path):
    """Whatever number it has in its name; what only one of them has keeps its own."""

    def loaded(*kernels):
        modules = [SimpleNamespace(kernel=kernel, other=0) for kernel in kernels]
        monkeypatch.setattr(PyCodeCache, "modules", modules)
        return inductor.tuned_kernels()

    theirs = loaded(tuned_kernel(tmp_path, "triton_0", "pass", "slow"), tuned_kernel(tmp_path, "triton_1", "2", "a"))
    same, own = tuned_kernel(tmp_path, "triton_5", "pass", "fast"), tuned_kernel(tmp_path, "triton_6", "3", "b")
    assert inductor.share_choices(loaded(same, own), theirs) == 1
    assert (same.launchers, own.launchers) == (["slow"], ["b"])


@pytest.fixture
def no_gpu(monkeypatch, compiler):
    """A machine whose GPU is the CPU, whose models are small, and whose compilers only trace."""
    clock = iter(range(10**6))
    original_case = command.make_case

    def build(architecture, dtype, device, small=False):
        return original_build(architecture, torch.float32, "cpu", small=True)

    original_build = zoo.Architecture.build
    monkeypatch.setattr(zoo.Architecture, "build", build)
    monkeypatch.setattr(command, "make_case", partial(original_case, small=True))
    monkeypatch.setattr(measure, "warm_up", lambda: None)
    monkeypatch.setattr(measure, "_backend", lambda compiler: "aot_eager")
    monkeypatch.setattr(measure, "last_report", Report)
    monkeypatch.setattr(measure, "ROUNDS", 4)
    monkeypatch.setattr(measure, "WARM_UP", 1)
    monkeypatch.setattr(gpu_measurements, "has_gpu", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "no GPU")
    monkeypatch.setattr(gpu_measurements, "peak_bytes", lambda call: call().nbytes)
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


def test_course_of_a_run(no_gpu, tmp_path, capsys):
    assert command.main(["--only", "dit", "--out", str(tmp_path)]) == 0
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
    assert command.main(["--only", "dit", "--compare", str(tmp_path / "models.json")]) == 0


def test_decoding_may_be_repeated(no_gpu, tmp_path):
    """Each step writes the cache at the next position; a run rewinds it often enough for the cache to suffice."""
    pytest.importorskip("transformers")
    words = ["--only", "gemma3", "--modes", "decode", "--batches", "2", "--out", str(tmp_path)]
    assert command.main(words) == 0
    (only,) = load(tmp_path / "models.json").results
    assert only.name == "gemma3-4b decode b2"
    assert max(only.inductor.error, only.bridge.error) < 1e-5


def test_a_worse_run_exits_with_1(no_gpu, tmp_path):
    command.main(["--only", "dit", "--out", str(tmp_path)])
    path = tmp_path / "models.json"
    old = json.loads(path.read_text())
    old["results"][0]["ratio"] = 0.5
    path.write_text(json.dumps(old))
    assert command.main(["--only", "dit", "--compare", str(path)]) == 1


def test_a_budget_leaves_the_rest_out(no_gpu, tmp_path):
    words = ["--only", "dit", "--budget-seconds", "0.000001", "--out", str(tmp_path)]
    assert command.main(words) == 0
    run = load(tmp_path / "models.json")
    assert run.results == []
    assert run.left_out == ["dit-xl vision"]


def test_a_failure_is_reported_and_the_rest_goes_on(no_gpu, tmp_path, monkeypatch):
    def broken(**values):
        raise AttributeError("no such model")

    zoo_of_two = [dataclasses.replace(zoo.VISION[-1], name="broken", make=broken), zoo.VISION[-1]]
    monkeypatch.setattr(zoo, "ZOO", zoo_of_two)
    assert command.main(["--out", str(tmp_path)]) == 1
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
    def compile_case(case, compiler):
        if compiler in broken:
            raise TypeError("no such index")
        return None, 1.0, None

    monkeypatch.setattr(measure, "_compile", compile_case)
    monkeypatch.setattr(measure, "_measure_alone", lambda case, compiler, *_: measure._attributed(case, compiler))
    case = cases.Case("any", "vision", 1, torch.clone, [torch.ones(1)])
    with pytest.raises(measure.CompilerFailed, match=said):
        measure.measure(case, number)


def test_findings_keep_what_is_written_by_hand(tmp_path):
    path = tmp_path / "models.md"
    path.write_text("# By hand\n\n## Launches\n\nold\n")
    assert command.main(["--only", "dit", "--small", "--findings", str(path)]) == 0
    text = path.read_text()
    assert text.startswith("# By hand\n\n## Launches\n\n| model")
    assert "old" not in text
    assert re.search(r"\| dit-xl vision \| \d+ \| \d+ \| \d+ \|", text)
    assert "### dit-xl vision" in text


def test_findings_go_on_after_a_failure(tmp_path, monkeypatch):
    """Inductor 2.11 cannot compile Mamba-2."""

    def fail(case):
        raise TypeError("no\nmore")

    monkeypatch.setattr(findings, "find", fail)
    path = tmp_path / "models.md"
    assert command.main(["--only", "dit", "--small", "--findings", str(path)]) == 0
    assert "Not compiled, dit-xl vision: TypeError: no\n" in path.read_text()


def test_findings_have_every_reason_once():
    remarks = [("no_common_band", "a", "here"), ("no_common_band", "a", "there")]
    group = GroupReport("group0", ["op0"], 2, 2, reason=Reason.not_profitable, detail="b at loc(x)", remarks=remarks)
    group.decisions = ["apart [not_liftable]: c", "persistent: d"]
    assert findings.why(group) == [("not_profitable", "b"), ("not_liftable", "c"), ("no_common_band", "a")]
