"""Test what torch says of a GPU."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from bridge.inductor import hardware
from bridge.offline.arch import ARCHITECTURES, device_properties


def says(monkeypatch, properties):
    """Have torch say this of a GPU."""
    module = SimpleNamespace(get_device_properties=lambda device: properties)
    monkeypatch.setattr(torch, "get_device_module", lambda device: module)


def test_the_memory_of_an_h100_has_the_bandwidth_that_its_clock_and_width_give(monkeypatch):
    """Check 2619 MHz at both edges of 5120 bits, which Triton calls 3352 GB/s."""
    says(monkeypatch, SimpleNamespace(memory_clock_rate=2619000, memory_bus_width=5120))
    assert hardware.memory_bandwidth(torch.device("cuda")) == pytest.approx(3.352e12, rel=1e-3)


@pytest.mark.parametrize("arch", ARCHITECTURES.values(), ids=str)
def test_a_gpu_that_is_not_there_says_what_its_architecture_does(monkeypatch, arch):
    says(monkeypatch, device_properties(arch))
    assert hardware.memory_bandwidth(torch.device("cuda")) == pytest.approx(arch.memory_bandwidth, rel=1e-6)
    assert hardware.shared_memory(torch.device("cuda")) == arch.shared_memory_per_multiprocessor


def test_what_torch_does_not_say_is_zero(monkeypatch):
    """Check properties without memory's clock, as of other makers' GPUs, and a device without any."""
    says(monkeypatch, SimpleNamespace())
    assert hardware.memory_bandwidth(torch.device("cuda")) == hardware.shared_memory(torch.device("cuda")) == 0
    monkeypatch.undo()
    assert hardware.memory_bandwidth(torch.device("cpu")) == hardware.shared_memory(torch.device("cpu")) == 0
