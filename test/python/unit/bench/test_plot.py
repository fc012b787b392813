"""Test the bars of a run as an SVG."""

from __future__ import annotations

from unittest import mock

import pytest

from bridge.bench import plot

AXIS = plot.Axis(0.8, 1.2)
CASES = [plot.Bars("first", [(0.9, 0.0), (1.0, 0.0)], "note 1"), plot.Bars("second", [(1.1, 0.0), (0.8, 0.1)], "")]


def test_no_case_makes_no_file(tmp_path, capsys):
    plot.write_svg(tmp_path / "models.svg", [], "title", ["all"], AXIS)
    assert list(tmp_path.iterdir()) == [] and capsys.readouterr().err == ""


def test_a_missing_matplotlib_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(plot.importlib.util, "find_spec", lambda name: None)
    plot.write_svg(tmp_path / "models.svg", CASES, "title", ["all", "generated"], AXIS)
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().err.startswith("no models.svg, for which matplotlib is missing: pip install")


def test_series_of_a_case_are_below_each_other():
    axes = mock.Mock()
    plot._draw_series(axes, CASES, 1, "generated", 0.25)
    (places, ratios, thickness), keywords = axes.barh.call_args
    assert (places, ratios, thickness, keywords["label"]) == ([0.25, 1.25], (1.0, 0.8), 0.25, "generated")
    assert axes.errorbar.call_args.kwargs["xerr"] == (0.0, 0.1)


def test_series_without_spread_have_no_error_bars():
    axes = mock.Mock()
    plot._draw_series(axes, CASES, 0, "all", 0.5)
    assert axes.barh.called and not axes.errorbar.called


def test_the_axis_is_labelled_in_tenths_and_with_names():
    axes = mock.MagicMock()
    plot._draw_axis(axes, CASES, AXIS, middle=0.25)
    axes.set_yticks.assert_called_once_with([0.25, 1.25], ["first", "second"])
    assert axes.set_xticks.call_args.args[0] == pytest.approx([0.8, 0.9, 1.0, 1.1, 1.2])
    assert [call.args for call in axes.annotate.call_args_list] == [("note 1", (1.2, 0.25)), ("", (1.2, 1.25))]
    top, bottom = axes.set_ylim.call_args.args[::-1]
    assert top < 0 and bottom > 1.5
