"""For `bridge bench --out` and benchmarks/results.py: a run as an SVG, a group of horizontal bars a case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

#: Pixels: a bar, the gap below a case, what names take on the left, and the axis.
_BAR, _GAP, _NAMES, _WIDTH = 8, 6, 250, 600

_COLORS = ("#2166ac", "#92c5de", "#d6604d")


@dataclass(frozen=True)
class Axis:
    """What the bars are along: from and to which ratio, where 1 is marked."""

    start: float
    end: float

    def x(self, ratio: float) -> float:
        """Pixels from the left; what is outside is drawn at the end."""
        inside = min(max(ratio, self.start), self.end)
        return _NAMES + (inside - self.start) / (self.end - self.start) * _WIDTH


@dataclass(frozen=True)
class Bars:
    """One case: its name, (ratio, spread) of each series, and what stands at the end of its line."""

    name: str
    values: list[tuple[float, float]]
    note: str


def svg(cases: list[Bars], title: str, series: list[str], axis: Axis) -> str:
    """Return an SVG document with a bar for each value of each case, in the colors of the series."""
    line = _BAR * len(series) + _GAP
    height, width = 48 + line * len(cases) + 30, _NAMES + _WIDTH + 110
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
            'font-size="11">'
        ),
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="8" y="18">{escape(title)}</text>',
    ]
    lines += _legend(series)
    for number, case in enumerate(cases):
        lines += _bars(case, 48 + line * number, axis)
    return "\n".join([*lines, *_ticks(height - 26, axis), "</svg>"]) + "\n"


def _legend(series: list[str]) -> Iterator[str]:
    for number, name in enumerate(series):
        x = 8 + 140 * number
        yield f'<rect x="{x}" y="28" width="10" height="10" fill="{_COLORS[number]}"/>'
        yield f'<text x="{x + 14}" y="37">{escape(name)}</text>'


def _bars(case: Bars, top: int, axis: Axis) -> Iterator[str]:
    middle = top + _BAR * len(case.values) // 2 + 4
    yield f'<text x="{_NAMES - 6}" y="{middle}" text-anchor="end">{escape(case.name)}</text>'
    for number, (ratio, spread) in enumerate(case.values):
        y = top + _BAR * number
        width = axis.x(ratio) - _NAMES
        yield f'<rect x="{_NAMES}" y="{y}" width="{width:.1f}" height="{_BAR - 1}" fill="{_COLORS[number]}"/>'
        if spread:
            low, high = axis.x(ratio - spread), axis.x(ratio + spread)
            yield f'<line x1="{low:.1f}" y1="{y + 3.5}" x2="{high:.1f}" y2="{y + 3.5}" stroke="black"/>'
    yield f'<text x="{_NAMES + _WIDTH + 6}" y="{middle}">{escape(case.note)}</text>'


def _ticks(bottom: int, axis: Axis) -> Iterator[str]:
    for tenth in range(round(axis.start * 10), round(axis.end * 10) + 1):
        x, stroke = axis.x(tenth / 10), "black" if tenth == 10 else "#cccccc"
        yield f'<line x1="{x:.1f}" y1="44" x2="{x:.1f}" y2="{bottom}" stroke="{stroke}" stroke-opacity="0.6"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">{tenth / 10:.1f}</text>'
