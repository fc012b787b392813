"""Test how `bridge bench` compares two compilers, with stubs for the GPU and the compilers."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch._inductor.async_compile import AsyncCompile

from bridge.bench import gpu_measurements, measure
from bridge.bench.gpu_measurements import Launch
from bridge.reasons import Reason, Refusal
from bridge.reports import Report


def compiled(name="", **values):
    """Return what is known of a case that one compiler has compiled."""
    values = {"seconds": [3.0, 1.0, 2.0], "error": 0.0, "launches": [], "shared_kernels": 0, "peak_bytes": 0, **values}
    return measure._Compiled(graph=SimpleNamespace(replay=name), kept=None, **{"report": Report(), **values})


def test_compilers_alternate_and_the_first_rounds_do_not_count(monkeypatch):
    replayed = []

    def event_times(replay, count, rewind):
        replayed.append(replay)
        return [12.0 * count]

    def launches(replay):
        return [Launch("triton_0", 8.0), Launch("gemm", 100.0)]

    monkeypatch.setattr(gpu_measurements, "event_times", event_times)
    monkeypatch.setattr(gpu_measurements, "launches", launches)
    both = {name: compiled(name) for name in measure.COMPILERS}
    measure._measure_in_turn(SimpleNamespace(steps=4, rewind=lambda: None), both)
    assert replayed[:4] == ["inductor", "bridge", "bridge", "inductor"]
    for one in both.values():
        assert one.times == [3.0] * measure.ROUNDS and one.triton == [2.0] * measure.PROFILED


def test_a_result_has_the_median_of_the_ratios_of_rounds():
    theirs = compiled(times=[1.0, 2.0, 4.0], triton=[0.0] * 3, shared_kernels=1, peak_bytes=7)
    groups = [SimpleNamespace(reason=None), *[SimpleNamespace(reason=SimpleNamespace(name="cyclic"))] * 2]
    refusals = [Refusal([], reason, "") for reason in (Reason.mlir_missing, Reason.atomics)]
    report = SimpleNamespace(groups=groups, refusals=refusals, total_seconds=0.5)
    ours = compiled(times=[2.0, 1.0, 4.0], triton=[0.0] * 3, report=report, shared_kernels=3)
    result = measure._result(SimpleNamespace(model="m", mode="decode", batch=2), theirs, ours)
    assert (result.ratio, result.triton_ratio, result.reasons) == (1.0, 1.0, {"cyclic": 2, "mlir_missing": 1})
    assert (result.bridge_s, result.shared_kernels) == (0.5, 3)
    assert (result.inductor.total_us, result.inductor.compile_s, result.inductor.peak_bytes) == (2.0, 2.0, 7)


def test_a_round_is_compared_with_the_same_round():
    assert measure._ratios([1.0, 6.0, 5.0], [2.0, 3.0, 0.0]) == [0.5, 2.0, 1.0]
    with pytest.raises(ValueError, match="shorter"):
        measure._ratios([1.0, 2.0], [1.0])


@pytest.mark.parametrize(
    ("failing", "words"),
    [
        (("bridge",), "with Bridge only: RuntimeError: no bridge"),
        (("bridge", "inductor"), "Inductor, without Bridge: RuntimeError: no inductor"),
    ],
)
def test_a_failure_says_whose_it_is(monkeypatch, failing, words):
    def compile_case(case, compiler, plan):
        if compiler in failing:
            raise RuntimeError(f"no {compiler}")

    monkeypatch.setattr(measure, "_compile", compile_case)
    with pytest.raises(measure.CompilerFailed) as raised:
        measure._attributed(None, "bridge")
    assert str(raised.value) == words


def test_slow_cases_have_fewer_rounds(monkeypatch):
    monkeypatch.setattr(gpu_measurements, "event_times", lambda *arguments: [1.0])
    monkeypatch.setattr(gpu_measurements, "launches", lambda replay: [])
    both = {name: compiled(name) for name in measure.COMPILERS}
    measure._measure_in_turn(SimpleNamespace(steps=1, rewind=lambda: None), both, measure.Plan(seconds=0.0))
    assert [len(one.times) for one in both.values()] == [measure.FEWEST_ROUNDS - measure.FEWEST_ROUNDS // 4] * 2
    assert [len(one.triton) for one in both.values()] == [1, 1], "seven more calls of each under the profiler"
    result = measure._result(measure.Case("m", "cpu", 0, torch.clone, []), *both.values())
    assert result.triton_spread == 0.0, "half of the range of one value was an error, after all of the measurement"


@pytest.mark.parametrize(("device", "waits"), [("cpu", 0), ("cuda", 1)])
def test_only_kernels_of_gpus_wait_for_the_processes_that_compile_them(monkeypatch, device, waits):
    """Check that only GPU kernels wait for the compile processes: on a busy machine these take minutes."""
    asked: list = []
    monkeypatch.setattr(torch, "randn", lambda *_, device: None)
    monkeypatch.setattr(torch, "compile", lambda *_, backend: lambda x: None)
    monkeypatch.setattr(AsyncCompile, "wait_pool_ready", lambda: asked.append(1), raising=False)
    measure.warm_up(device)
    assert len(asked) == waits


def test_progress_is_told(monkeypatch):
    told: list = []
    monkeypatch.setattr(gpu_measurements, "event_times", lambda *arguments: [1.0])
    monkeypatch.setattr(gpu_measurements, "launches", lambda replay: [])
    plan = measure.Plan(warm_up=1, rounds=2, progress=lambda *state: told.append(state))
    measure._measure_in_turn(SimpleNamespace(steps=1, rewind=lambda: None), {"bridge": compiled()}, plan)
    assert told == [("measuring", number, 3) for number in range(3)]


@pytest.mark.parametrize("graphs", [True, False])
def test_a_call_is_captured_unless_it_is_to_be_run(monkeypatch, graphs):
    meter = SimpleNamespace(captured=lambda *_: ("graph", "memory"), peak_bytes=lambda _: 0, launches=lambda _: [])
    compilation: tuple = (lambda x: x + 1), 1.0, torch.ones(1), {}, measure.Counts()
    monkeypatch.setattr(measure, "_attributed", lambda *_: compilation)
    case = measure.Case("m", "cuda", 0, torch.clone, [torch.zeros(1)])
    plan = measure.Plan(meter=meter, graphs=graphs)
    one = measure._measure_alone(case, "inductor", torch.ones(1), [], {}, plan)
    assert (one.graph == "graph") is graphs and one.error == 0.0
    assert graphs or torch.equal(one.graph.replay(), torch.ones(1))
