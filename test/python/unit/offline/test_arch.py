"""Test what describes a GPU that is not there: how an architecture may be written, and what is refused."""

from __future__ import annotations

import dataclasses

import pytest

from bridge.offline.arch import ARCHITECTURES, GpuArch, resolve_arch


@pytest.mark.parametrize("written", [90, "90", "sm_90", "sm_90a"])
def test_every_way_to_write_an_architecture_gives_the_same(written):
    assert resolve_arch(written) is ARCHITECTURES[90]


def test_an_architecture_of_the_users_own_is_taken_as_it_is():
    own = GpuArch("own", 12, 1, 1, 2, 3, 4, 5)
    assert resolve_arch(own) is own
    assert own.capability == 121
    assert (own.memory_bandwidth, own.arithmetic_rate) == (0.0, 0.0)


@pytest.mark.parametrize("written", [75, "sm_", "hopper", "sm_90b", -90])
def test_an_unknown_architecture_is_refused_with_the_known_ones(written):
    with pytest.raises(ValueError, match=r"unknown GPU architecture .*; known: sm_80, sm_90$"):
        resolve_arch(written)


def test_architectures_are_listed_under_their_capability():
    assert {number: arch.capability for number, arch in ARCHITECTURES.items()} == {80: 80, 90: 90}
    for arch in ARCHITECTURES.values():
        assert arch.shared_memory_per_block_optin < arch.shared_memory_per_multiprocessor
        assert arch.memory_bandwidth > 0
        assert arch.arithmetic_rate > 0


def test_an_architecture_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ARCHITECTURES[90].warp_size = 64  # type: ignore[misc]
