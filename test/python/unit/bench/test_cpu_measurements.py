"""Test times and memory on the CPU."""

from __future__ import annotations

import time

import torch

from bridge.bench import cpu_measurements, gpu_measurements


def test_what_measures_has_the_same_names():
    names = ["synchronize", "event_times", "captured", "launches", "peak_bytes"]
    assert all(callable(getattr(meter, name)) for meter in (cpu_measurements, gpu_measurements) for name in names)


def test_times_are_microseconds_without_the_preparation(monkeypatch):
    clock = iter([1.0, 1.5, 9.0, 9.25])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    prepared: list = []
    assert cpu_measurements.event_times(lambda: None, 2, lambda: prepared.append(1)) == [5e5, 2.5e5]
    assert prepared == [1, 1]


def test_the_peak_counts_what_is_there_at_a_time():
    x = torch.ones(1024, 256)

    def call():
        y = x + 1
        del y
        return (x + 2) + (x + 3)

    assert cpu_measurements.peak_bytes(call) == 3 * x.nbytes
    assert cpu_measurements.peak_bytes(lambda: x.view(-1)) == 0


def test_a_call_is_repeated_as_it_is():
    calls: list = []
    graph, _ = cpu_measurements.captured(lambda: calls.append(1))
    graph.replay()
    assert calls == [1] and cpu_measurements.launches(graph.replay) == [] and cpu_measurements.synchronize() is None
