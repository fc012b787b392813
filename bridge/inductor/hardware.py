"""Tell what torch says of a GPU."""

from __future__ import annotations

import torch


def multiprocessors(device: torch.device) -> int:
    """Return how many multiprocessors a GPU has."""
    from torch._inductor.runtime.hints import DeviceProperties

    return int(DeviceProperties.create(device).multi_processor_count)


def memory_bandwidth(device: torch.device) -> float:
    """Return the bytes a second that a GPU's memory moves, by its clock and width; 0 where torch does not say these."""
    hertz = 1000 * _property(device, "memory_clock_rate")
    return 2 * hertz * _property(device, "memory_bus_width") / 8


def shared_memory(device: torch.device) -> int:
    """Return the bytes of shared memory of a multiprocessor of a GPU; 0 where torch does not say it."""
    return _property(device, "shared_memory_per_multiprocessor")


def _property(device: torch.device, name: str) -> int:
    properties = getattr(torch.get_device_module(device), "get_device_properties", lambda _: None)(device)
    return int(getattr(properties, name, 0))
