"""Write an explanation as one HTML file, which needs nothing else: texts, drawings, style and script are in it."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ..inductor.graphs import short_place
from .counts import Counts, count
from .first_screen import amount, as_html
from .html_spaces import draw, read_spaces
from .text import space

if TYPE_CHECKING:
    from .explanation import ExplainedRefusal, Explanation, GroupExplanation
    from .recording import Statement

_ASSETS = Path(__file__).parent / "html"


def render(explanation: Explanation) -> str:
    """Return the whole page."""
    style, script = ((_ASSETS / name).read_text() for name in ("report.css", "report.js"))
    groups = "".join(_group(group, i) for i, group in enumerate(explanation.groups))
    title = f"Bridge: {_e(explanation.name)} for {_e(explanation.target)}"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{style}</style></head>\n<body><main>'
        f'<h1>{title}</h1><div class="card">{as_html(explanation.screen)}</div>{_summary(explanation)}'
        f"{_tabs(explanation)}{groups}{_others(explanation)}"
        f"</main><script>{script}</script></body></html>\n"
    )


def _e(text: object) -> str:
    return html.escape(str(text))


def _summary(explanation: Explanation) -> str:
    line = explanation.roofline
    changed = sum(group.fused for group in explanation.groups)
    figures = [
        (f"{explanation.kernels_before} → {explanation.kernels_after}", "kernels, Inductor → Bridge"),
        (f"{changed} of {len(explanation.groups)}", "groups changed"),
        (_e(line.device), _e(line)),
    ]
    return _figures(figures)


def _figures(figures: list[tuple[str, str]]) -> str:
    cells = "".join(f'<div><b>{value}</b><span class="dim">{words}</span></div>' for value, words in figures)
    return f'<div class="card figures">{cells}</div>'


def _tabs(explanation: Explanation) -> str:
    buttons = [
        f'<button data-group="{i}" aria-selected="{str(i == 0).lower()}">{_e(group.name)}'
        f' <span class="{"good" if group.fused else "bad"}">{"changed" if group.fused else "apart"}</span></button>'
        for i, group in enumerate(explanation.groups)
    ]
    return f"<nav>{''.join(buttons)}</nav>"


def _others(explanation: Explanation) -> str:
    rows = "".join(
        f"<tr><td>{_e(other.node)}</td><td>{_e(other.reason)}</td><td>{_e(other.text)}</td></tr>"
        for other in explanation.others
    )
    title = f"<summary>Left alone, {len(explanation.others)}</summary>"
    return f'<div class="card"><details>{title}<table>{rows}</table></details></div>' if rows else ""


# ---------------------------------------------------------------------------------------------------------
# A group
# ---------------------------------------------------------------------------------------------------------


def _group(group: GroupExplanation, number: int) -> str:
    parts = [_numbers(group), _graphs(group), _refusals(group), _stages(group, number), _spaces(group), _kernels(group)]
    return f'<section class="group" data-group="{number}"{" hidden" if number else ""}>{"".join(parts)}</section>'


def _card(title: str, body: str, kind: str = "") -> str:
    return f'<div class="card {kind}"><h2>{title}</h2>{body}</div>' if body else ""


def _numbers(group: GroupExplanation) -> str:
    figures = [
        (f"{group.kernels_before} → {group.kernels_after}", "kernels"),
        (f"{amount(group.bytes_before)} → {amount(group.bytes_after)}", "moved, at typical sizes"),
        (f"{1e6 * group.seconds_before:.1f} → {1e6 * group.seconds_after:.1f} µs", "expected at best"),
    ]
    figures += [
        (f"{used.registers}", f"registers, {used.spills} spills: {_e(used.kernel)}") for used in group.resources
    ]
    notes = "".join(f"<li>{_e(line)}</li>" for line in (*group.decisions, *group.certificate))
    return _figures(figures) + _card("Decisions", f"<ul>{notes}</ul>" if notes else "")


def _refusals(group: GroupExplanation) -> str:
    body = "".join(map(_refusal, group.refusals))
    if group.guards:
        body += "<h3>Would fuse with</h3>" + "".join(f"<p><code>{_e(guard)}</code></p>" for guard in group.guards)
    return _card("Refused" if not group.fused else "Refused on the way", body)


def _refusal(refusal: ExplainedRefusal) -> str:
    accesses = "".join(
        f"<li><b>{_e(a.node)}</b> {_e(a.words)} <code class=dim>{_e(a.source)}</code></li>" for a in refusal.accesses
    )
    example = f"<ul>{accesses}</ul>" if accesses else ""
    head = f"<b>[{_e(refusal.reason)}]</b> {_e(refusal.node)}: {_e(refusal.text)}"
    return f'<div class="refusal">{head} <code class="dim">{_e(refusal.source)}</code>{example}</div>'


def _kernels(group: GroupExplanation) -> str:
    parts = [
        f"<details{' open' if group.fused else ''}><summary><b>{_e(kernel.name)}</b> "
        f'<span class="dim">{_e(", ".join(kernel.nodes))}</span></summary>'
        f"<pre>{_e(kernel.source.strip())}</pre></details>"
        for kernel in group.kernels
    ]
    return _card("Generated kernels", "".join(parts))


# ---------------------------------------------------------------------------------------------------------
# Stages
# ---------------------------------------------------------------------------------------------------------


def _stages(group: GroupExplanation, number: int) -> str:
    """Return the counts after each pass, and the IR before beside that of a chosen pass."""
    texts = {name: text for name, text in group.stages.items() if ".mlir" in name}
    if not texts:
        return ""
    last = list(texts)[-1]
    rows = "".join(_count_row(name, count(text, group.sizes), name == last) for name, text in texts.items())
    names = ("stage", "nests", "loops", "loads", "stores", "operations", "executed")
    head = "".join(f'<th class="{"number" if i else ""}">{name}</th>' for i, name in enumerate(names))
    options = "".join(f"<option{' selected' if name == last else ''}>{_e(name)}</option>" for name in texts)
    buttons = '<button data-step="-1">←</button> <button data-step="1">→</button>'
    after = "".join(
        f'<pre class="stage" data-stage="{_e(name)}"{"" if name == last else " hidden"}>{highlight(text)}</pre>'
        for name, text in texts.items()
    )
    sides = (
        f"<div><h3>affine.mlir, as Inductor had it</h3><pre>{highlight(next(iter(texts.values())))}</pre></div>"
        f'<div><h3>after <select class="stages" aria-label="stage">{options}</select> {buttons}</h3>{after}</div>'
    )
    hint = '<p class="dim">A click on an access marks all accesses of its buffer.</p>'
    return _card("After each pass", f"<table><tr>{head}</tr>{rows}</table>{hint}<div class='two'>{sides}</div>")


def _count_row(name: str, counts: Counts, selected: bool) -> str:
    numbers = (counts.nests, counts.loops, counts.loads, counts.stores, counts.operations, f"{counts.executed:,}")
    cells = "".join(f'<td class="number">{number}</td>' for number in numbers)
    chosen = str(selected).lower()
    return f'<tr data-stage="{_e(name)}" aria-selected="{chosen}"><td>{_e(name)}</td>{cells}</tr>'


_ARGUMENT = re.compile(r'(%arg\d+): memref<[^>]*>(?:>)? \{[^}]*?bridge\.buffer = "([^"]+)"')
_ACCESS = re.compile(r"affine\.(load|store) .*?(%arg\d+)\[[^\]]*\]")
_LOOPS = re.compile(r"affine\.(?:for|if|parallel)\b")


def highlight(text: str) -> str:
    """Return IR with its loops and accesses marked; an access names its buffer."""
    buffers = dict(_ARGUMENT.findall(text))
    lines = []
    for line in text.strip().splitlines():
        marked = _LOOPS.sub(lambda found: f'<span class="loops">{found[0]}</span>', _e(line))
        lines.append(_ACCESS.sub(lambda found: _access(found, buffers), marked))
    return "\n".join(lines)


def _access(found: re.Match, buffers: dict[str, str]) -> str:
    kind, argument = found[1], found[2]
    buffer = buffers.get(argument, argument)
    return f'<span class="access {kind}" data-buffer="{_e(buffer)}" title="{_e(buffer)}">{found[0]}</span>'


def _spaces(group: GroupExplanation) -> str:
    stages = {name: text for name, text in group.stages.items() if name in ("affine.mlir", "fused.mlir")}
    drawn = "".join(
        f"<div><h3>{_e(name)}</h3>{draw(read_spaces(text, group.sizes))}</div>" for name, text in stages.items()
    )
    legend = (
        '<p class="dim">blue: the band, a row each iteration; green: lanes; pink: a reduction; hatched: guarded</p>'
    )
    return _card("Iteration spaces", f'{legend}<div class="two">{drawn}</div>' if drawn else "")


# ---------------------------------------------------------------------------------------------------------
# The graph of kernels
# ---------------------------------------------------------------------------------------------------------

_WIDTH, _HEIGHT, _SPACE = 430, 62, 26


def _graphs(group: GroupExplanation) -> str:
    before = [[s.name for s in group.statements if s.kernel == k] for k in sorted({s.kernel for s in group.statements})]
    after = [[n for n in kernel.nodes if any(s.name == n for s in group.statements)] for kernel in group.kernels]
    titles = [f"kernel {k}" for k in range(len(before))]
    sides = f"<div><h3>Inductor</h3>{_graph(group, before, titles)}</div>"
    if after:
        sides += f"<div><h3>Bridge</h3>{_graph(group, after, [kernel.name for kernel in group.kernels])}</div>"
    return _card("Kernels, statements and the buffers between them", f'<div class="two">{sides}</div>')


def _graph(group: GroupExplanation, kernels: list[list[str]], titles: list[str]) -> str:
    """Draw statements from top to bottom, in frames that are kernels; at the right, arcs for buffers."""
    statements = {s.name: s for s in group.statements}
    parts, places, top = [], {}, 6
    for nodes, title in zip(kernels, titles, strict=True):
        height = len(nodes) * (_HEIGHT + 8) + 26
        parts.append(f'<rect class="kernel" x="4" y="{top}" width="{_WIDTH + 20}" height="{height}" rx="8"/>')
        parts.append(f'<text class="small" x="14" y="{top + 17}">{_e(title[:66])}</text>')
        for i, node in enumerate(nodes):
            places[node] = top + 24 + i * (_HEIGHT + 8)
            parts.append(_statement(statements[node], places[node]))
        top += height + _SPACE
    edges = [_edge(name, group, places, i) for i, name in enumerate(group.buffers)]
    width = _WIDTH + 180
    return f'<svg viewBox="0 0 {width} {top}" width="{width}" height="{top}" role="img">{"".join(parts + edges)}</svg>'


def _statement(statement: Statement, top: int) -> str:
    lines = [f"{statement.name}  {space(statement)}", *(short_place(f, n) for f, n in statement.lines[:1])]
    words = "".join(
        f'<text x="26" y="{top + 22 + 20 * i}"{" class=small" if i else ""}>{_e(line)}</text>'
        for i, line in enumerate(lines)
    )
    box = f'<rect class="box" x="14" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" rx="5"/>'
    return f'<g class="statement" data-node="{_e(statement.name)}">{box}{words}</g>'


def _edge(name: str, group: GroupExplanation, places: dict[str, int], lane: int) -> str:
    writers = [s.name for s in group.statements if name in s.writes and s.name in places]
    readers = [s.name for s in group.statements if name in s.reads and s.name in places]
    if not writers or not readers:
        return ""
    start, x = places[writers[0]] + _HEIGHT // 2, _WIDTH + 14
    bend = x + 40 + 12 * (lane % 6)
    kind = "edge" if group.buffers[name].temporary else "edge outside"
    arcs = "".join(
        f'<path class="{kind}" d="M{x} {start} C{bend} {start} {bend} {end} {x} {end}"/>'
        for end in (places[reader] + _HEIGHT // 2 for reader in readers)
    )
    label = f'<text class="small" x="{bend - 8}" y="{start + 14 + 13 * (lane % 4)}">{_e(name)}</text>'
    return arcs + label
