"""Test which small sums across rows may be one kernel, and in whose place."""

from __future__ import annotations

import pytest
import torch
from schedules import look_at_gpu_schedule

from bridge.horizontal import equal_loops
from bridge.horizontal.equal_loops import merged, place_of, sets_to_merge
from bridge.horizontal.independence import positions_of
from bridge.lowering.triton import codegen
from bridge.reasons import Reason, Unsupported


def three_sums(x, *others):
    return tuple((x * other).sum(0) for other in others)


def standardised(*inputs):
    """Each input is needed twice: the second time it may still be in the cache."""
    return tuple((x - x.mean(0)) / (x.std(0) + 1e-5) for x in inputs)


def found(function, *sizes):
    """Return (the names of all kernels in order, those of the sets, the places of these) of a function."""
    seen: list = []

    def look(schedule):
        sets = sets_to_merge(schedule)
        places = [place_of(schedule, kernels) for kernels in sets]
        positions = [positions_of(schedule, kernels) for kernels in sets]
        seen.append((len(schedule), positions, places))

    look_at_gpu_schedule(function, [torch.empty(size) for size in sizes], look)
    return seen[-1]


def test_second_stages_of_the_same_loops_are_one_set():
    """The first stages are large, and read a buffer in common: they are one kernel of Inductor's, or a launch."""
    kernels, (positions,), (place,) = found(three_sums, *[(8192, 1024)] * 4)
    assert len(positions) == 3 and place in positions and kernels > 3


def test_no_other_kernel_runs_earlier_than_it_did():
    """Of two inputs each has its mean and its deviation; together they would wait until both have been read."""
    _, sets, places = found(standardised, (2048, 4096), (2048, 4096))
    assert [len(positions) for positions in sets] == [2, 2]
    assert [place in positions for place, positions in zip(places, sets, strict=True)] == [True, True]
    assert max(sets[0]) < min(sets[1])


def test_others_may_not_stand_between_what_a_set_needs_and_what_needs_it():
    def look(schedule):
        first, second = sets_to_merge(schedule)
        assert place_of(schedule, [*first, *second]) is None
        looked.append(True)

    looked: list = []
    look_at_gpu_schedule(standardised, [torch.empty(2048, 4096), torch.empty(2048, 4096)], look)
    assert looked


@pytest.mark.parametrize(("name", "most"), [("LAUNCH_BYTES", 1 << 18), ("MOST_LOADED", 1), ("MOST_REDUCED", 8)])
def test_what_takes_longer_than_a_launch_stays_apart(monkeypatch, name, most):
    monkeypatch.setattr(equal_loops, name, most)
    assert found(three_sums, *[(8192, 1024)] * 4)[1] == []


def test_what_the_code_generator_cannot_run_together_is_refused(monkeypatch):
    monkeypatch.setattr(codegen, "fuse_nodes", lambda nodes: None)
    refused: list = []

    def look(schedule):
        for kernels in sets_to_merge(schedule):
            with pytest.raises(Unsupported) as error:
                merged(kernels)
            refused.append(error.value.reason)

    look_at_gpu_schedule(three_sums, [torch.empty(8192, 1024)] * 4, look)
    assert set(refused) == {Reason.not_liftable}
