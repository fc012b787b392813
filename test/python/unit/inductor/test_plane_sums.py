"""Test sums over planes: what first stages are taken for, the loops of both stages, and what is undone."""

from __future__ import annotations

import contextlib

import pytest
import torch
from schedules import look_at_column_part

from bridge import inductor
from bridge.inductor import plane_sums
from bridge.inductor.columns import is_column_part

IMAGES, CHANNELS, HEIGHT, WIDTH = 16, 32, 113, 115


def sums(x):
    return x.sum((0, 2, 3))


@torch.library.custom_op("bridge_plane_sums::overwrite", mutates_args=("x",))
def overwrite(x: torch.Tensor) -> None:
    x.mul_(2)


def sums_of_overwritten(x):
    x = x + 1
    overwrite(x)
    return x.sum((0, 2, 3))


def look(function, check, layout=torch.contiguous_format, shape=(IMAGES, CHANNELS, HEIGHT, WIDTH)):
    """Call `check` with the first stage of a function's only sum."""
    inputs = [torch.empty(shape).to(memory_format=layout)]
    look_at_column_part(function, inputs, lambda part, _: check(part))


@pytest.mark.parametrize(
    ("rows", "pieces"), [(1, 1), (IMAGES * CHANNELS, 1), (IMAGES * CHANNELS + 1, 5), (10**6, None)]
)
def test_a_part_is_a_plane_or_a_piece_of_one(rows, pieces):
    """Check that a part is a plane or a piece of one: as many pieces as wanted, or a divisor of 12995, 5 * 23 * 113.

    At the most there are 2599 of five elements, or 113 lines: of a part there is something to add up.
    """

    def check(part):
        one = plane_sums.plane_sum(part, rows)
        loops = one.body.sizes[1][1]
        assert one.outer == 1 and loops in (HEIGHT * WIDTH, HEIGHT)
        most = HEIGHT if loops == HEIGHT else 2599
        assert one.pieces == (min(p for p in (5, 113) if loops % p == 0) if pieces == 5 else pieces or most)
        assert one.parts == IMAGES * one.pieces

    look(sums, check)


def test_a_line_is_an_iteration_of_the_outermost_of_several_loops_over_a_plane():
    def check(part):
        one = plane_sums.in_lines(plane_sums.plane_sum(part, 1))
        assert (one.outer, one.pieces) == (1, HEIGHT)
        with contextlib.ExitStack() as undo:
            plane_sums.split_at_planes(one, undo)
            first, second = ([list(map(int, s)) for s in inductor.node_sizes(n)] for n in (part, one.total))
            assert first == [[IMAGES, CHANNELS, HEIGHT], [WIDTH]]
            assert second == [[CHANNELS], [IMAGES * HEIGHT]]

    look(sums, check)


def test_both_stages_get_other_loops_until_that_is_undone():
    def check(part):
        one = plane_sums.plane_sum(part, 1)
        stages, layout = (one.part, one.total), part.node.layout
        before = [inductor.node_sizes(node) for node in stages]
        with contextlib.ExitStack() as undo:
            plane_sums.split_at_planes(one, undo)
            assert not is_column_part(part)
            (first, reduced), second = map(inductor.node_sizes, stages)
            assert list(first) == [IMAGES, CHANNELS] and torch.Size(map(int, reduced)).numel() == HEIGHT * WIDTH
            assert [list(map(int, sizes)) for sizes in second] == [[CHANNELS], [IMAGES]]
            assert part.node.layout.size[-1] == IMAGES
        assert [inductor.node_sizes(node) for node in stages] == before
        assert part.node.layout is layout and is_column_part(part)

    look(sums, check)


def test_channels_that_are_neighbours_are_no_planes():
    """Check that channels that are adjacent are no planes: their sums are of columns."""
    seen = []
    look(sums, lambda part: seen.append(plane_sums.plane_sum(part, 1)), torch.channels_last)
    assert seen == [None]


def of_whole_numbers(x):
    return x.int().sum((0, 2, 3))


def test_sums_that_float32_does_not_hold_are_none():
    seen = []
    look(of_whole_numbers, lambda part: seen.append(plane_sums.plane_sum(part, 1)))
    assert seen == [None]


def test_a_single_sum_is_over_so_many_of_its_outermost_loops():
    def check(part):
        one = plane_sums.plane_sum(part, IMAGES * CHANNELS)
        assert one is None or one.outer < len(one.body.sizes[1])

    look(torch.sum, check)


def of_images(x):
    return x.sum((1, 2, 3))


@pytest.mark.parametrize("rows", [IMAGES + 1, 4 * IMAGES])
def test_a_part_of_a_whole_image_is_a_piece_of_it(rows):
    """Check that a part of a whole image is a piece of it: at least as many as wanted, and few more than Inductor's.

    Many more took as much memory.
    """

    def check(part):
        wanted = min(rows, IMAGES * int(part.node.get_layout().size[-1]))
        one = plane_sums.plane_sum(part, rows)
        assert one.outer == 0 and one.pieces == one.parts > 1
        divisors = [d for d in range(1, int(one.body.sizes[1][0]) + 1) if one.body.sizes[1][0] % d == 0]
        assert one.pieces == next(d for d in divisors if IMAGES * d >= wanted)
        assert plane_sums.in_lines(one).pieces != 1

    look(of_images, check)


def test_an_image_without_enough_pieces_is_no_plane():
    """Check that an image that cannot be cut into enough pieces is no plane; Inductor's more parts end anywhere."""
    seen = []
    look(of_images, lambda part: seen.append(plane_sums.plane_sum(part, 10**6)))
    assert seen == [None]


def of_sizes_that_were_rounded_up(x):
    """Compute a single sum whose loop cannot be divided by the number of Inductor's parts."""
    return x[:, :113].sum()


@pytest.mark.parametrize("function", [torch.sum, of_sizes_that_were_rounded_up])
def test_a_single_sum_has_as_many_parts_as_inductor_has_at_least(function):
    seen = []

    def check(part):
        one, parts = plane_sums.plane_sum(part, 10**6), int(part.node.get_layout().size[-1])
        seen.append(one is not None and one.parts >= parts)

    look(function, check, shape=(256, 128, 128, 5))
    assert seen == [True]


def test_planes_of_what_a_call_has_overwritten():
    """Check planes of what a call has overwritten: flex attention's sums over such parts ended in an error.

    The new contents are a buffer without a layout.
    """

    def check(part):
        assert plane_sums.plane_sum(part, IMAGES * CHANNELS).outer == 1

    look(sums_of_overwritten, check)
