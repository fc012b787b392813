"""Test patterns measured, with a stub for the GPU."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
import torch

from bridge.bench import gpu_measurements
from bridge.bench.corpus import measured
from bridge.reports import Report


@pytest.fixture
def stub_gpu(monkeypatch):
    """Set up a machine whose CUDA graphs run on the CPU."""

    def captured(call):
        return SimpleNamespace(replay=call), None

    monkeypatch.setattr(gpu_measurements, "captured", captured)
    monkeypatch.setattr(gpu_measurements, "event_times", lambda call, count: [(call(), 100.0)[1] for _ in range(count)])
    for name in ("synchronize", "empty_cache"):
        monkeypatch.setattr(torch.cuda, name, lambda: None)
    monkeypatch.setitem(sys.modules, "oracle_harness", SimpleNamespace(resolve_oracle=lambda f, inputs: (f, None)))


@pytest.mark.in_turn(2)
def test_the_course_of_a_measurement(corpus, stub_gpu):
    record = measured.measure(corpus, "norm_1")
    assert record["status"] not in ("skipped", "crash", "wrong"), record
    assert record["reference"] == "float64" and max(record["errors"]) < 1e-6
    assert {record["bridge_us"], record["oracle_us"]} == {50.0} and record["over_oracle"] == 1.0


def test_a_wrong_result_is_found(corpus, stub_gpu):
    def broken(gm, inputs):
        return lambda *args: [2 * result for result in gm(*args)]

    with (
        mock.patch.object(measured, "bridge", broken),
        mock.patch.object(measured, "report", Report),
    ):
        record = measured.measure(corpus, "norm_1")
    assert record["status"] == "wrong" and "result 0" in record["detail"]


def test_nothing_of_the_corpus_is_in_the_repository():
    package = Path(measured.__file__).parent
    assert not list(package.rglob("*.json")) and not list(package.rglob("repro*.py"))
