"""Test what `bridge time` measures, and how it says so."""

from __future__ import annotations

import pytest
import torch

from bridge.bench import cpu_measurements, gpu_measurements, timing
from bridge.bench.results import Result, Side


def result(**changes):
    one = Side(5, 3, 120.0, 80.0, 2.0, 4_000_000, 1e-6, 1.5, 3, 8_000_000)
    two = Side(4, 2, 60.0, 40.0, 3.0, 2_000_000, 2e-6, 0.5, 2, 6_000_000)
    return Result("m", "cuda", 0, one, two, 0.5, 0.01, 0.5, 0.01, 0.25, {"cyclic": 2}, **changes)


def test_a_timing_says_everything():
    text = str(timing.Timing("norm.py:norm", "H100", result(), "float64 eager"))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0] == f"norm.py:norm on H100, torch {torch.__version__}"
    assert lines[1:] == [
        "Inductor Bridge",
        "time, us 120.0 60.0 ratio 0.500 +- 0.010",
        "spread, us 1.5 0.5 half of the range of the middle half",
        "of that, us 80.0 40.0 in generated kernels",
        "launches 5 4",
        "kernels 3 2 of generated code",
        "they move, MB 8.00 6.00",
        "peak, MB 4.00 2.00 beyond weights and inputs",
        "compiling, s 2.0 3.0 of that Bridge 0.25",
        "error 1.0e-06 2.0e-06 relative to float64 eager",
        "left apart by Bridge: 2 cyclic",
    ]


def test_what_was_not_measured_has_no_line():
    side = Side(0, 0, 1.0, 0.0, 1.0, 0, 0.0)
    text = str(timing.Timing("f", "cpu", Result("m", "cpu", 0, side, side, 1.0, 0.0, 1.0, 0.0, 0.0), "eager"))
    assert "launches" not in text and "of that, us" not in text and "left apart" not in text


def test_faults_are_what_is_missing_or_broken():
    one = result()
    one.reasons.clear()
    one.reasons.update(not_profitable=2, pass_failed=1, mlir_missing=1)
    assert timing.Timing("f", "cpu", one, "eager").faults == ["pass_failed", "mlir_missing"]


def test_a_script_has_a_sum():
    both = [timing.Timing("f", "cpu", result(), "eager")] * 2
    assert timing.total(both) == (
        "all 2 graphs, each once: 240.0 -> 120.0 us (ratio 0.500), 6 -> 4 kernels, 16.00 -> 12.00 MB"
    )


def test_what_a_call_changes_is_put_back():
    module = torch.nn.BatchNorm1d(2)
    mean = module.running_mean.clone()

    def function(x, counter, untouched):
        counter.add_(1)
        return x + counter + untouched

    inputs = [torch.ones(2), torch.zeros(2), torch.ones(2)]
    case = timing.make_case(function, inputs, "f", "cpu")
    for _ in range(2):
        (out,) = case.tensors(case.run())
        assert torch.equal(out, torch.full((2,), 3.0))
    normed = timing.make_case(module, [torch.randn(4, 2)], "norm", "cpu")
    normed.rewind()
    assert torch.equal(module.running_mean, mean)


def test_random_numbers_are_the_same_in_every_call():
    case = timing.make_case(torch.rand_like, [torch.ones(4)], "f", "cpu")
    assert torch.equal(case.run(), case.run())


def test_modules_of_the_functions_file_go_with_it(monkeypatch):
    moved: list = []
    monkeypatch.setattr(torch.nn.Module, "to", lambda module, device: moved.append((module, device)))
    module = torch.nn.Linear(2, 2)
    exec("def function(x): return module(x)", namespace := {"module": module, "other": 3})  # noqa: S102
    timing.placed(namespace["function"], "cuda")
    timing.placed(module, "cuda")
    assert moved == [(module, "cuda")] * 2


def test_a_device_has_its_own_meter():
    assert timing.plan_for("cpu").meter is cpu_measurements and timing.plan_for("cuda").meter is gpu_measurements


@pytest.mark.parametrize("name", ["cpu", "cuda"])
def test_the_device_is_named(name, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "H100")
    assert timing._device_name(name).startswith({"cpu": "cpu (", "cuda": "H100"}[name])


def test_seconds_of_a_call_leave_the_arguments_alone(monkeypatch):
    def measured(function, arguments, name, device, plan, backward):
        arguments[0].add_(1)
        return timing.Timing(name, device, result(), "eager")

    monkeypatch.setattr(timing, "time_function", measured)
    given = torch.zeros(2)
    seconds = timing.seconds_of_call(torch.sin, [given], "cpu", False, lambda *_: None)
    assert seconds == pytest.approx((120e-6, 60e-6))
    assert not given.any()


@pytest.mark.parametrize(
    ("there", "target", "known"),
    [
        (False, "cpu", True),
        (False, "cuda:sm_90", False),
        (False, "cuda", False),
        (True, "cuda", True),
        (True, "cuda:sm_90", True),
        (True, "cuda:sm_80", False),
    ],
)
def test_a_machine_times_what_it_has(monkeypatch, there, target, known):
    monkeypatch.setattr(gpu_measurements, "has_gpu", lambda: there)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    assert timing.can_time(target) is known


def test_a_function_is_run_before_anything_is_prepared(monkeypatch):
    """Check that a function is run before anything is prepared, so that its error is reported at once."""
    told: list = []
    monkeypatch.setattr(timing, "measure", lambda *_, **__: told.append("measured"))
    plan = timing.plan_for("cpu", prepare=lambda: told.append("prepared"))
    with pytest.raises(RuntimeError, match="must match"):
        timing.time_function(torch.add, [torch.ones(2), torch.ones(3)], "add", "cpu", plan)
    assert told == []
    timing.time_function(torch.add, [torch.ones(2), torch.ones(2)], "add", "cpu", plan)
    assert told == ["prepared", "measured"]


def test_a_function_is_timed_with_its_backward():
    def function(x, factor):
        return torch.sin(x) * factor

    plan = timing.plan_for("cpu", rounds=1, warm_up=1)
    inputs = [torch.randn(4, 8), torch.randn(8)]
    one = timing.time_function(function, inputs, "f", "cpu", plan, backward=True)
    assert one.compared_with == "float64 eager"
    assert one.result.inductor.kernels >= 2 and one.result.bridge.error < 1e-5
