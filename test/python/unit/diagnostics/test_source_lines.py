"""Test places in IR as lines of the user's code."""

from __future__ import annotations

import pytest

from bridge.diagnostics.source_lines import find_place, source_line


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.py"
    path.write_text("def f(x):\n    return x + 1\n", encoding="utf-8")
    return str(path)


def test_a_line_is_shown_without_its_folder_and_indentation(model):
    assert source_line(model, 2) == "model.py:2  return x + 1"


def test_a_line_that_cannot_be_read_has_its_number_only(model):
    assert source_line(model, 9) == "model.py:9"
    assert source_line("/nowhere/gone.py", 3) == "gone.py:3"


def test_a_location_with_a_file(model):
    assert find_place(f'loc("op3"("{model}":2:4))', {}) == ("op3", "model.py:2  return x + 1")


def test_a_location_with_a_name_takes_the_first_line_of_the_node(model):
    lines = {"op3": [(model, 1), (model, 2)]}
    assert find_place('loc("op3")', lines) == ("op3", "model.py:1  def f(x):")
    assert find_place('loc("op4")', lines) == ("op4", "")


def test_a_location_without_a_name_is_left_as_it_is():
    assert find_place("loc(unknown)", {}) == ("", "loc(unknown)")
