"""Test instructions of kernels, where arithmetic takes longer than memory."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from paths import ROOT
from schedules import scheduled

from bridge.inductor.instructions import (
    ALONE,
    UNIFORM,
    UNIFORM_SHARES,
    WEIGHTS,
    bytes_asked_for,
    bytes_of_element,
    bytes_of_own_element,
    instructions,
    instructions_of,
)
from bridge.inductor.schedule import loop_nodes

LOAD, STORE = WEIGHTS["load"], WEIGHTS["store"]


def of(function, *sizes):
    """Return (instructions for an element, for all) of the only kernel."""
    with scheduled(function, *sizes) as graph:
        (kernel,) = graph.scheduler.nodes
        return instructions(loop_nodes(kernel)), instructions_of(kernel)


@pytest.mark.parametrize(
    ("function", "own"),
    [(lambda x: x + 1, 1), (torch.tanh, WEIGHTS["tanh"]), (lambda x: x.tanh() * x, WEIGHTS["tanh"] + 1)],
)
def test_each_operation_has_its_weight(function, own):
    assert of(function, (64, 32)) == (LOAD + own + STORE, 64 * 32 * (LOAD + own + STORE))


def test_what_two_nodes_compute_is_computed_once():
    def two(x):
        return x.tanh() + 1, x.tanh() * 2

    assert of(two, (64, 32))[0] == LOAD + WEIGHTS["tanh"] + 2 + 2 * STORE


def test_what_a_kernel_makes_is_not_loaded():
    def both(x):
        y = x.tanh()
        return y, (y * 2).exp()

    assert of(both, (64, 32))[0] == LOAD + WEIGHTS["tanh"] + STORE + 1 + WEIGHTS["exp"] + STORE


def test_a_value_that_is_used_twice_is_looked_at_once():
    """Check that a value that is used twice counts once: each of 60 squares has the one before it twice."""

    def powers(x):
        for _ in range(60):
            x = x.pow(2)
        return x

    assert of(powers, (64, 32))[0] == LOAD + 60 + STORE


def test_a_part_under_a_mask_is_computed_for_all():
    """Check that a part under a mask counts for all lanes, as Triton executes all.

    A pool over four joined parts was taken for half as many, and was slower.
    """

    assert of(lambda x: F.pad(x.tanh(), (0, 8)), (64, 32))[0] > LOAD + WEIGHTS["tanh"] + STORE


def asked_for(function, *sizes):
    with scheduled(function, *sizes) as graph:
        return [bytes_asked_for(kernel) for kernel in graph.scheduler.nodes]


def test_what_is_loaded_under_two_masks_is_loaded_twice():
    """Check that a load under two masks counts twice, as Triton has one for each.

    The scale of a column counts as well: for 64 rows of 32 and 8 numbers of 4 bytes.
    """

    def padded(x, scale):
        return F.pad(x * scale, (0, 8)) + F.pad(x * scale, (8, 0))

    assert asked_for(padded, (64, 32), (32,)) == [64 * 40 * 4 * 4]
    assert asked_for(lambda x: x * x, (64, 32)) == [64 * 32 * 4]


def test_what_neighbours_share_is_computed_once_for_them():
    """Check that a value of a row counts once for the elements of a thread, and a value of a column for each."""
    assert of(lambda x, row: x * (row + 1), (64, 32), (64, 1))[0] == LOAD + 1 + STORE + UNIFORM * (LOAD + 1)
    assert of(lambda x, column: x * (column + 1), (64, 32), (32,))[0] == LOAD + 1 + STORE + LOAD + 1


def test_what_follows_on_code_with_branches_is_computed_for_each():
    """Check that neighbours share no root: ptxas repeats its code, and what is made of it, for each of them."""
    root = of(lambda x, row: x * (torch.sqrt(row) + 1), (64, 32), (64, 1))[0]
    assert root == LOAD + 1 + STORE + UNIFORM * LOAD + UNIFORM_SHARES["sqrt"] * WEIGHTS["sqrt"] + 1


def test_what_neighbours_share_under_a_mask_is_loaded_for_each():
    """Check that a row's value under a mask counts for each lane: Triton does not see there that they share it."""

    def shifted(x, row):
        return F.pad(x * row.rsqrt(), (0, 0, 1, 0))

    own = of(shifted, (64, 32), (64, 1))[0]
    assert own >= of(lambda x: F.pad(x, (0, 0, 1, 0)), (64, 32))[0] + ALONE + 2


def test_bytes_of_an_element_are_those_of_all_that_it_loads():
    with scheduled(lambda x, y: x * y, (64, 32), (32,)) as graph:
        assert [bytes_of_element(kernel) for kernel in graph.scheduler.nodes] == [8]


def test_bytes_of_an_own_element_are_without_what_all_rows_load():
    """Check that a weight of the columns does not count, in loops that reduce and in others."""
    for function in (lambda x, y: x * y, lambda x, y: (x * y).sum(1)):
        with scheduled(function, (64, 32), (32,)) as graph:
            assert [bytes_of_own_element(kernel) for kernel in graph.scheduler.nodes] == [4]
    with scheduled(lambda x, y: x * y, (64, 32), (64, 1)) as graph:
        assert [bytes_of_own_element(kernel) for kernel in graph.scheduler.nodes] == [4 + 4 * UNIFORM]


@pytest.mark.in_turn(3)
@pytest.mark.one_in(2)
@pytest.mark.parametrize(("name", "way"), [("exp", 0), ("tanh", 0), ("sin", 1)])
def test_weights_are_what_the_compiler_makes(name, way):
    """Check that weights are what the compiler emits.

    way: 0 for all of the code, 1 for the shortest way through it.
    """
    command = [sys.executable, str(ROOT / "benchmarks" / "instructions.py"), name]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (line,) = [line for line in text.splitlines() if line.startswith(f"{name}:")]
    found = float(line.split(": ")[1].split(", ")[way])
    assert abs(found - WEIGHTS[name]) <= 1 + WEIGHTS[name] / 4
