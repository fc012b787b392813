"""The ratios of a run as an SVG: one bar a case, what is left of Inductor's time."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from .results import Result

#: Pixels: a bar with the gap below it, names on the left, and the width of one half of Inductor's time.
_BAR, _NAMES, _HALF = 22, 190, 300

#: The axis goes from half of Inductor's time to a tenth more than all of it.
_FROM, _TO = 0.5, 1.1

_TOTAL, _TRITON = "#2166ac", "#92c5de"


def _x(ratio: float) -> float:
    return _NAMES + (min(max(ratio, _FROM), _TO) - _FROM) * 2 * _HALF


def svg(results: list[Result], heading: str) -> str:
    """An SVG document; bars that end left of the line are faster than Inductor."""
    height, width = 60 + _BAR * len(results) + 30, int(_x(_TO)) + 60
    lines = [
        (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        'font-size="11">'),
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="8" y="18">Time over Inductor\'s: {escape(heading)}</text>',
        f'<rect x="8" y="28" width="10" height="10" fill="{_TOTAL}"/><text x="22" y="37">all kernels</text>',
        f'<rect x="98" y="28" width="10" height="10" fill="{_TRITON}"/><text x="112" y="37">generated kernels</text>',
    ]
    for number, result in enumerate(results):
        lines += _bars(result, 48 + _BAR * number)
    return "\n".join([*lines, *_axis(height - 26), "</svg>"]) + "\n"


def _bars(result: Result, top: int) -> Iterator[str]:
    yield f'<text x="{_NAMES - 6}" y="{top + 12}" text-anchor="end">{escape(result.name)}</text>'
    for ratio, spread, color, y in (
        (result.ratio, result.spread, _TOTAL, top + 2),
        (result.triton_ratio, result.triton_spread, _TRITON, top + 10),
    ):
        yield f'<rect x="{_NAMES}" y="{y}" width="{_x(ratio) - _NAMES:.1f}" height="7" fill="{color}"/>'
        low, high = _x(ratio - spread), _x(ratio + spread)
        yield f'<line x1="{low:.1f}" y1="{y + 3.5}" x2="{high:.1f}" y2="{y + 3.5}" stroke="black"/>'
    yield f'<text x="{_x(_TO) + 6:.1f}" y="{top + 12}">{result.ratio:.3f}</text>'


def _axis(bottom: int) -> Iterator[str]:
    for tenth in range(round(_FROM * 10), round(_TO * 10) + 1):
        ratio = tenth / 10
        x, stroke = _x(ratio), "black" if tenth == 10 else "#cccccc"
        yield f'<line x1="{x:.1f}" y1="44" x2="{x:.1f}" y2="{bottom}" stroke="{stroke}" stroke-opacity="0.6"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">{ratio:.1f}</text>'
