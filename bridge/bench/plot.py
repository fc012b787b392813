"""For `bridge bench --out` and benchmarks/results.py: a run as an SVG, a group of horizontal bars a case.

matplotlib draws it: the extra `plots`.
"""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Inches: a bar, what is above and below the bars, and the width; the bars' part of the width.
_BAR, _MARGINS, _WIDTH = 0.09, 1.1, 10.0
_LEFT, _RIGHT = 0.36, 0.92

#: Characters in a line of the title.
_TITLE = 130

_COLORS = ("#2166ac", "#92c5de", "#d6604d")

#: Text stays text, and a file is the same each time that it is made from the same figures.
_STYLE = {"font.size": 8, "svg.fonttype": "none", "svg.hashsalt": "bridge"}


@dataclass(frozen=True)
class Axis:
    """Say what the bars are along: from and to which ratio; a line marks 1."""

    start: float
    end: float


@dataclass(frozen=True)
class Bars:
    """Hold one case: its name, (ratio, spread) of each series, and what stands at the end of its line."""

    name: str
    values: list[tuple[float, float]]
    note: str


def write_svg(path: Path, cases: list[Bars], title: str, series: list[str], axis: Axis) -> None:
    """Write an SVG with a bar for each value of each case; none for no case, or where matplotlib is not installed."""
    if not cases:
        return
    if importlib.util.find_spec("matplotlib") is None:
        print(f"no {path.name}, for which matplotlib is missing: pip install 'bridge-inductor[plots]'", file=sys.stderr)
        return
    import matplotlib  # weight: an optional package

    with matplotlib.rc_context(_STYLE):
        _figure(cases, title, series, axis).savefig(path, format="svg", metadata={"Date": None})


def _figure(cases: list[Bars], title: str, series: list[str], axis: Axis) -> Figure:
    from matplotlib.figure import Figure  # weight: an optional package

    height = _MARGINS + _BAR * (len(series) + 1) * len(cases)
    figure = Figure(figsize=(_WIDTH, height))
    axes = figure.add_axes((_LEFT, 0.35 / height, _RIGHT - _LEFT, 1 - _MARGINS / height))
    figure.text(0.01, 1 - 0.1 / height, textwrap.fill(title, _TITLE), verticalalignment="top")
    thickness = 1 / (len(series) + 1)  # of a bar, where that of a case with the gap below it is 1
    for number, name in enumerate(series):
        _draw_series(axes, cases, number, name, thickness)
    _draw_axis(axes, cases, axis, (len(series) - 1) / 2 * thickness)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(series), frameon=False)
    return figure


def _draw_series(axes: Axes, cases: list[Bars], number: int, name: str, thickness: float) -> None:
    ratios, spreads = zip(*(case.values[number] for case in cases), strict=True)
    places = [position + number * thickness for position in range(len(cases))]
    axes.barh(places, ratios, thickness, color=_COLORS[number], label=name)
    if any(spreads):
        axes.errorbar(ratios, places, xerr=spreads, fmt="none", ecolor="black", elinewidth=0.8)


def _draw_axis(axes: Axes, cases: list[Bars], axis: Axis, middle: float) -> None:
    """Draw what is not a bar; middle: of a case's bars, from the first one's."""
    places = [position + middle for position in range(len(cases))]
    axes.set_yticks(places, [case.name for case in cases])
    axes.set_xticks([tenth / 10 for tenth in range(round(axis.start * 10), round(axis.end * 10) + 1)])
    axes.set_xlim(axis.start, axis.end)
    axes.set_ylim(len(cases) - 1 + 2 * middle + 0.5, -0.5)
    axes.grid(axis="x", color="#cccccc", linewidth=0.5)
    axes.axvline(1, color="black", linewidth=0.8)
    for place, case in zip(places, cases, strict=True):
        axes.annotate(case.note, (axis.end, place), xytext=(4, 0), textcoords="offset points", va="center")
    axes.spines[["top", "right"]].set_visible(False)
