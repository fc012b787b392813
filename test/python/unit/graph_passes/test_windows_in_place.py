"""Test that windows whose places are known are added up where they lie, without a kernel that scatters them."""

from __future__ import annotations

import pytest
import torch
from emitted import run_emitted

import bridge
from bridge.backend import bridge as bridge_backend
from bridge.graph_passes.windows_in_place import MOST_OVERLAPPING, Windows, windows_of
from bridge.offline.wrapper import parse_wrapper


def changed():
    return bridge.report().counters.get("scatter_by_comparison", 0)


def gradient(shape, dimension, size, step):
    """Return the gradient of windows of a tensor, as a function of theirs."""

    def function(windows):
        return torch.ops.aten.unfold_backward(windows.sin(), shape, dimension, size, step) * 2

    return function


def windows_like(shape, dimension, size, step, dtype=torch.float32):
    """Return numbers of the shape that windows of a tensor have."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(torch.empty(shape).unfold(dimension, size, step).shape, generator=generator).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("shape", "dimension", "size", "step"),
    [
        *(((3, 40), 1, 8, 8), ((3, 40), 1, 8, 4), ((3, 40), 1, 7, 3), ((3, 41), 1, 8, 12), ((3, 40), 1, 40, 40)),
        *(((3, 21), 1, 5, 8), ((5, 16, 3), 1, 4, 2), ((16, 5), 0, 6, 2), ((2, 30), 1, 9, 7), ((4, 12), 1, 1, 1)),
    ],
)
def test_no_kernel_scatters_and_the_values_are_the_same(shape, dimension, size, step, dtype):
    """Check that there is one kernel, and one that stores what several windows have in common; there were three."""
    function = gradient(shape, dimension, size, step)
    given = [windows_like(shape, dimension, size, step, dtype)]
    ours, codes = run_emitted(function, given, bridge_backend)
    assert changed() == 1
    assert len(parse_wrapper(codes[0]).launches) <= 1 + (size > step)
    assert "tl.atomic_add" not in codes[0]
    exact = function(given[0].double())
    torch.testing.assert_close(ours, exact.to(dtype))


def test_no_zero_is_negative():
    """Check that what has been added to zero is no negative zero, as a scatter has it."""

    def function(windows):
        return torch.ops.aten.unfold_backward(-windows, (2, 8), 1, 4, 4)

    ours, _ = run_emitted(function, [torch.zeros(2, 2, 4)], bridge_backend)
    assert changed() == 1
    assert not ours.signbit().any()


@pytest.mark.parametrize(("size", "count"), [(4, 1), (5, 0)])
def test_three_addends_that_are_rounded_one_by_one_are_scattered(size, count):
    """Check that windows of which three have an element in common stay where each addition would be rounded."""
    function, given = gradient((3, 40), 1, size, 2), [windows_like((3, 40), 1, size, 2, torch.bfloat16)]
    with torch._inductor.config.patch(emulate_precision_casts=True):
        ours, _ = run_emitted(function, given, bridge_backend)
    assert changed() == count
    torch.testing.assert_close(ours, function(*given))


def test_many_windows_over_one_element_are_scattered():
    """Check that windows of which more have an element in common than a lane may load stay as they are."""
    size = MOST_OVERLAPPING + 1
    function, given = gradient((3, 40), 1, size, 1), [windows_like((3, 40), 1, size, 1)]
    ours, _ = run_emitted(function, given, bridge_backend)
    assert changed() == 0
    torch.testing.assert_close(ours, function(*given))


def test_places_that_the_user_gives_are_scattered():
    def function(x, places, values):
        return torch.ops.aten.index_put(torch.zeros_like(x), [None, places], values, True) + x

    given = [torch.ones(3, 16), torch.tensor([0, 1, 2, 1, 2, 3]), torch.ones(3, 6)]
    ours, _ = run_emitted(function, given, bridge_backend)
    assert changed() == 0
    torch.testing.assert_close(ours, function(*given))


@pytest.mark.parametrize("fill, accumulate", [(1.0, True), (0.0, False)])
def test_what_is_not_added_to_zeros_is_scattered(fill, accumulate):
    """Check that windows that overwrite one another, or are added to ones, stay as they are."""

    def function(x, values):
        places = torch.arange(16, device=x.device).unfold(0, 8, 4).reshape(-1)
        return torch.ops.aten.index_put(torch.full_like(x, fill), [None, places], values, accumulate) + x

    given = [torch.ones(3, 16), torch.ones(3, 24)]
    ours, _ = run_emitted(function, given, bridge_backend)
    assert changed() == 0
    torch.testing.assert_close(ours, function(*given))


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([0, 1, 2, 3], Windows(1, 9, 0, 1, 4, 4)),
        ([2, 3, 5, 6], Windows(1, 9, 2, 2, 2, 3)),
        ([0, 1, 2, 1, 2, 3], Windows(1, 9, 0, 2, 3, 1)),
        *(([], None), ([0, 1, 9], None), ([-1, 0], None), ([0, 0, 1, 1], None), ([3, 4, 0, 1], None)),
        *(([0, 1, 3, 4, 7, 8], None), ([0, 1, 2, 5, 6], None)),
    ],
)
def test_windows_of_places(places, expected):
    assert windows_of(places, 1, 9) == expected
