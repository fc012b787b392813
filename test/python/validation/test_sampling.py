"""Test which tests CI runs.

In turn all parameters, with one turn always the same, and at least one of each function.
"""

from pathlib import Path
from unittest import mock

import pytest
import sampling


def item(name: str, folder: str = "whole", **markers: int) -> mock.Mock:
    made = mock.Mock(path=Path("/", folder, "test_file.py"), nodeid=f"{folder}/test_file.py::{name}")
    made.name = name
    made.get_closest_marker = lambda marker: mock.Mock(args=[markers[marker]]) if marker in markers else None
    made.iter_markers_with_node = lambda marker: [(made, made.get_closest_marker(marker))] if marker in markers else []
    return made


def names(chosen) -> set[str]:
    return {each.name for each in chosen}


PARAMETERS = [item(f"test_of_many[{n}]", one_in=2) for n in range(50)]


def test_all_parameters_have_their_turn():
    turns = [sampling.Sample(turn, thin=4).of(PARAMETERS) for turn in range(8)]
    assert names(set().union(*turns)) == names(PARAMETERS)
    assert sum(map(len, turns)) == len(PARAMETERS)


def test_a_turn_is_always_the_same():
    samples = [sampling.Sample(0x35061A6, thin=4).of(PARAMETERS) for _ in range(2)]
    assert samples[0] == samples[1] != sampling.Sample(0x35061A7, thin=4).of(PARAMETERS)


@pytest.mark.parametrize("turn", range(4))
def test_each_function_is_run(turn):
    items = [item("test_of_none"), item("test_of_two[a]"), item("test_of_two[b]")]
    chosen = names(sampling.Sample(turn, thin=100).of(items))
    assert "test_of_none" in chosen and len(chosen) == 2


def test_one_of_few_parameters_is_another_one_the_next_time():
    items = [item(f"test_of_few[{n}]", one_in=1000) for n in range(3)]
    assert set().union(*(sampling.Sample(turn).of(items) for turn in range(3))) == set(items)


def test_a_long_list_is_run_in_one_turn_of_two_at_the_least():
    items = [item(f"test_of_many[{n}]", one_in=10000) for n in range(20)]
    turns = [sampling.Sample((turn << 12) + 7, thin=4).of(items) for turn in range(4)]
    assert sorted(map(len, turns)) == [0, 0, 1, 1]


def test_functions_below_a_path_have_their_turn():
    items = [item(f"test_{n}", folder) for n in range(20) for folder in ("whole", "few")]
    turns = [sampling.Sample(turn << 12, thin=4, few=(Path("/few"),)).of(items) for turn in range(4)]
    assert set().union(*turns) == set(items)
    assert set(items[::2]) == turns[0] & turns[1] == turns[1] & turns[2]


def test_parameters_of_a_test_that_has_its_turn_have_theirs():
    """Check that parameters of a test with turns all have theirs.

    If both were drawn by the same digits, some parameters would never be run.
    """
    items = [item(f"test_marked[{n}]", in_turn=2) for n in range(9)]
    turns = [sampling.Sample((turn << 12) + one, thin=2).of(items) for turn in range(2) for one in range(2)]
    assert set().union(*turns) == set(items)
    assert sorted(map(bool, turns)) == [False, False, True, True]


def test_nothing_is_left_out_but_what_is_slow_where_nothing_is_thinned():
    items = [item("test_slow", slow=1), item("test_fast[a]", in_turn=9), item("test_fast[b]", "few")]
    assert sampling.Sample(turn=3, few=(Path("/few"),)).of(items) == set(items[1:])
