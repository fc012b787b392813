"""Test that launches that kernels share leave a graph's peak of memory as it was, and are as few as that allows."""

from __future__ import annotations

import functools

import pytest
import torch

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.horizontal import peak_memory, shared_launch
from bridge.horizontal.peak_memory import Liveness, Room
from bridge.inductor.memory import live_bytes
from bridge.reasons import Unsupported
from bridge.support.error_boundary import boundary


def launches(function, *inputs):
    """Return the numbers of launches with Inductor and with Bridge."""
    with torch.no_grad():
        return tuple(offline.compile_for_gpu(function, inputs, compile_fx=b).n_kernels for b in (None, bridge_backend))


def products(x, u, v, w):
    return x @ torch.sin(u) @ torch.cos(v)


def wide_product_between(x, u, v, w):
    """Compute a wide product between: the last product's input would be made early, and be there at the peak."""
    return torch.relu(x @ torch.sin(u) @ w) @ w.T @ torch.cos(v)


@pytest.mark.parametrize(("function", "expected"), [(products, (2, 1)), (wide_product_between, (3, 3))])
@pytest.mark.parametrize("rows", [1024, 16])
def test_no_launch_raises_the_peak(function, expected, rows):
    """Check that no launch raises the peak, however little that is: with `rows` from 2 MB to 512 B."""
    shapes = [(rows, rows)] * 3 + [(rows, 4 * rows)]
    assert launches(function, *map(torch.randn, shapes)) == expected, bridge.report()


def test_a_kernel_without_room_leaves_its_set_and_finds_one_that_feeds_the_same():
    """Check that a kernel without room leaves its set and joins another one.

    Of four alike two have a launch before the peak; the third has to wait for it, and has one with the fourth.
    """

    def function(x, u, v, z, w):
        y = torch.relu(x @ torch.sin(u) @ torch.cos(v) @ w) @ w.T
        return torch.sigmoid(y.view(32, 32).t()) @ torch.tanh(z)

    shapes = [(32, 32)] * 4 + [(32, 128)]
    assert launches(function, *map(torch.randn, shapes)) == (5, 3), bridge.report()
    assert any("memory more" in line for group in bridge.report().groups for line in group.decisions)


@pytest.mark.parametrize(
    ("most", "above", "counted", "allowed"),
    [
        (100, 8, 200, True),
        (100, 512, 200, False),
        (100, 8, 711, True),
        (100, 8, 712, False),
        (1 << 29, 2048, 200, True),
    ],
)
def test_a_seed_that_lives_longer_is_no_block_of_the_allocators(monkeypatch, most, above, counted, allowed):
    """Check that a seed that lives longer does not count, as it is less than a block of the allocator's.

    Dropout, a norm and a rotation of halves stayed apart for 8 bytes beside a result that overwrites its input.
    """
    monkeypatch.setattr(peak_memory, "peak_bytes", lambda schedule, in_place: counted)
    assert Room(most, {}, counted=200)._means_nothing(above, []) is allowed


def test_what_a_kernel_makes_for_itself_has_no_memory(monkeypatch):
    """Check that what a kernel makes for itself has no memory, nor what it writes into an input, here a counter."""
    results = []

    def recorded(schedule, in_place=True):
        results.append(live_bytes(schedule, in_place))
        return results[-1]

    def function(x, counter):
        counter.add_(1)
        return x * torch.rsqrt(x.square().sum(-1, keepdim=True)), x + 1

    monkeypatch.setattr(peak_memory, "live_bytes", recorded)
    launches(function, torch.randn(64, 128), torch.tensor(3))
    size = 2 * 64 * 128 * 4
    assert sum(made for _, made in results[0]) == max(level for level, _ in results[0]) == size


#: Kernels by name; `wide` needs the most, `c` and `d` are read after it.
SCHEDULE = ["a", "b", "wide", "c", "d"]
LEVELS = {"a": 2, "b": 4, "wide": 10, "c": 4, "d": 6}
MADE = {"a": 2, "b": 2, "wide": 8, "c": 2, "d": 2}


@pytest.mark.parametrize(
    ("peak", "parts"), [(10, [["a", "b"], ["c", "d"]]), (12, [["a", "b", "c"]]), (14, [["a", "b", "c", "d"]])]
)
def test_launch_sets_have_the_parts_that_there_is_room_for(peak, parts):
    live, progress = Liveness(LEVELS, MADE, peak), shared_launch._Progress(SCHEDULE)
    with boundary(strict=True, refuse=lambda refusal: None):
        assert shared_launch._split_by_room(progress, ["a", "b", "c", "d"], live) == parts
    assert len(progress.refused) == (0 if peak == 14 else 1)


def test_results_are_there_from_the_launch_on():
    live = Liveness(dict(LEVELS), dict(MADE), 12)
    live.join(SCHEDULE, [0, 3], "ac")
    assert (live.levels["ac"], live.levels["b"], live.levels["wide"], live.levels["d"]) == (4, 6, 12, 6)
    assert live.made["ac"] == 4
    with pytest.raises(Unsupported, match="memory more"):
        live.check(["ac", "b", "wide", "d"], [0, 3])


@pytest.mark.parametrize(("more", "fits"), [(2, True), (511, True), (512, False)])
def test_less_than_a_block_of_the_allocators_parts_no_launch(more, fits):
    """Check that less than a block of the allocator's does not prevent a launch.

    Gradients of two scales had a launch each, as together they were 2 bytes more at the peak.
    """
    levels, made = ({name: 100 * size for name, size in one.items()} for one in (LEVELS, MADE))
    levels["wide"] = 1000 + more
    live = Liveness(dict(levels), dict(made), 1200, Liveness(dict(levels), dict(made), 1200))
    check = functools.partial(live.check, SCHEDULE, [1, 3])
    if fits:
        check()
        return
    with pytest.raises(Unsupported, match="memory more"):
        check()


def test_what_inductors_estimate_has_not_is_admitted():
    room = Room(10, dict.fromkeys(SCHEDULE, 10))
    room.admit(20)
    room.admit(15)
    unknown = Room.unknown()
    unknown.admit(20)
    assert (room.most, unknown.most) == (20, 0)
