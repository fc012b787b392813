"""Test what kernels access far apart, and move beside it."""

from __future__ import annotations

import pytest
import sympy
import torch
from schedules import look_at_gpu_schedule

from bridge import offline
from bridge.backend import bridge
from bridge.inductor import sectors

ROWS, COLUMNS = 4096, 1024


def transposed(x):
    return x.t().contiguous()


def every_other_transposed(x):
    return x[:, ::2].t().contiguous()


def first_of_each_row(x):
    return x[:, 0] + 1


@pytest.mark.parametrize(
    ("function", "beside"),
    [
        (transposed, 0),  # the second dimension of the tile is along the rows
        (every_other_transposed, ROWS * COLUMNS // 2 * 28),  # no loop goes over neighbours, so the tile has one
        (first_of_each_row, ROWS * 28),
        (lambda x: x + 1, 0),
    ],
)
def test_what_a_tile_has_no_neighbours_of_moves_with_its_sector(function, beside):
    found: list[int] = []

    def look(kernels):
        found.extend(sectors.bytes_beside_tile(kernel) for kernel in kernels)

    look_at_gpu_schedule(function, [torch.empty(ROWS, COLUMNS)], look)
    assert found == [beside]


@pytest.mark.parametrize(
    ("steps", "itemsize", "again"),
    [
        (((1, 1),), 4, 0),
        (((1, 2),), 4, 0),  # one store is made of two
        (((1, 3),), 4, 1000 * 4 * 2),
        (((1, -6),), 2, 1000 * 2 * 5),
        (((1, 8),), 4, 0),  # each is alone in its sector: `beside`
        (((1, 3), (8, 1)), 4, 0),  # another loop of the tile has what is between
    ],
)
def test_a_store_of_every_third_element_has_a_part_of_each_sector(steps, itemsize, again):
    """Check the extra bytes of stores to every third element, which have a part of each sector.

    Forces of atoms on each other took 50 us in one kernel, and 8 and 27 in two, on an H100.
    """
    store = sectors.Access("buf0", True, steps, sympy.Integer(0), 1000, itemsize)
    assert store.in_parts == again
    assert store._replace(stores=False).in_parts == 0


def forces(places, mask):
    apart = places[:, :, None] - places[:, None]
    inverse = (1 / (apart.square().sum(-1) + 1e-3)) ** 3
    return torch.where(mask, 4 * (inverse * inverse - inverse), 0.0).sum(-1)


def test_coordinates_are_not_stored_one_by_one():
    """Check that coordinates are not stored one by one: the gradient's own kernel has them side by side."""
    inputs = [torch.zeros(64, 256, 3, requires_grad=True), torch.zeros(64, 256, 256, dtype=torch.bool)]
    alone, ours = (
        offline.compile_for_gpu(forces, inputs, compile_fx=compile_fx, backward=True) for compile_fx in (None, bridge)
    )
    assert ours.n_kernels == alone.n_kernels


def test_rows_of_channels_are_far_apart_in_planes():
    """Check that accesses to rows of channels in planes are far apart; contiguous ones are left out."""
    found: list[list[sectors.RowAccess]] = []

    def look(kernels):
        nodes = [node for kernel in kernels for node in sectors.loop_nodes(kernel)]
        found.append(sectors.accesses_far_apart([node for node in nodes if node.is_reduction()], 3))

    look_at_gpu_schedule(lambda x: x - x.amax(1, keepdim=True), [torch.empty(8, 512, 64, 64)], look)
    assert found == [[sectors.RowAccess((512 * 4096, 64, 1), 8 * 512 * 4096 * 4)]]
    look_at_gpu_schedule(lambda x: x - x.amax(3, keepdim=True), [torch.empty(8, 512, 64, 64)], look)
    assert found[1] == []


@pytest.mark.parametrize(
    ("function", "across"),
    [
        (lambda x: x.softmax(1), True),  # over positions, each of which has nine heads
        (lambda x: x.softmax(2), False),
        (lambda x: x[..., ::2].softmax(-1), False),  # what is stepped over is in no row
    ],
)
def test_a_reduction_may_step_over_other_rows(function, across):
    found: list[bool] = []

    def look(kernels):
        found.append(any(map(sectors.reduces_across_rows, kernels)))

    look_at_gpu_schedule(function, [torch.empty(4096, 196, 9)], look)
    assert found == [across]


def access(steps, stores=False, elements=1000, itemsize=2):
    return sectors.Access("x", stores, tuple(steps), 0, elements, itemsize)


def test_a_step_of_merged_loops_is_found_in_the_loop_around_it():
    """Check that a step of merged loops is found in the outer loop: loops of 8 and 16 adjacent iterations are one."""
    assert access([(1, 1)]).step(16) == 16
    assert access([(1, 3), (16, 500)]).step(16) == 500
    assert access([(1, 3), (16, 500)]).step(32) == 1000


def test_stores_into_a_sector_meet_on_their_way_to_memory():
    load, store = access([(1, 784)]), access([(1, 784)], stores=True)
    assert load.beside == 1000 * 30 and store.beside == 1000 * 14


@pytest.mark.parametrize(
    ("function", "is_far"),
    [
        (lambda x: x.amax(0), True),
        (lambda x: x.amax(1), False),
        (lambda x: (x + x.t()).amax(0), False),
    ],
)
def test_columns_are_far_apart_in_memory(function, is_far):
    found: list[bool] = []

    def look(kernels):
        found.append(all(sectors.is_far_along_rows(kernel) for kernel in kernels))

    look_at_gpu_schedule(function, [torch.empty(COLUMNS, COLUMNS)], look)
    assert found == [is_far]
