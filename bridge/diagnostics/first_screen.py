"""Write the first screen of a report and of an explanation: what was saved, by which groups, and what stayed apart.

Names are the user's: lines of code and operations.  Times are those of a roofline for the bytes and the launches of the
generated kernels, or measured ones where somebody has given them.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from ..reasons import TRAINING_HINT, Reason, advice, explanation, why_apart, without_place
from ..reports import FAULTS, NOT_COMPILED, GroupReport, KernelReport, Report
from .roofline import Roofline, roofline
from .source_lines import find_place, source_line

#: Groups and pairs that the screen shows.
MOST_GROUPS = 10
MOST_PAIRS = 5

#: Notes that the screen shows.
MOST_NOTES = 3

#: Columns of the text, and of the user's code in it.
WIDTH = 118
CODE_WIDTH = 48

#: Part of all bytes that two kernels have in common at least, to be shown as apart.
LEAST_OF_ALL = 0.01

#: Said of a group that neither bytes nor launches show to be faster: it loads a row once where it did twice, say.
_NOT_IN_FIGURES = "what it saves is not in bytes or launches: `bridge time` measures it"

#: Operations named of a kernel: the last ones, as what comes before them is often computed in others too.
MOST_OPERATIONS = 3


@dataclass(frozen=True)
class Gain:
    """Hold a group that was changed: a sentence, and seconds that it saves by the roofline."""

    words: str
    seconds: float


@dataclass(frozen=True)
class Apart:
    """Hold two kernels that stayed apart: a sentence, the reason, what would change it; moved: bytes that both move."""

    words: str
    reason: str
    why: str
    advice: str
    moved: int


@dataclass(frozen=True)
class Screen:
    """Hold what is said first.

    opening: a paragraph; gains: groups by gain; apart: the most expensive pairs; rest: a line a reason; hints: for all.
    """

    opening: str = ""
    gains: tuple[Gain, ...] = ()
    apart: tuple[Apart, ...] = ()
    rest: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(wrapped for line in _lines(self) for wrapped in _wrapped(line))


def describe(reports: Sequence[Report], name: str = "bridge", measured: tuple[float, float] | None = None) -> Screen:
    """Return the first screen of what was compiled.

    name: what was; measured: seconds of all without Bridge, and with it, where they were timed.
    """
    known = [report for report in reports if report.graphs]
    if not known:
        return Screen(NOT_COMPILED)
    line = _roofline(known[0].device)
    fused = (entry for entry in named_groups(known) if entry[1].fused)
    gains = sorted((_gain(*entry, line) for entry in fused), key=lambda g: -g.seconds)
    return Screen(
        f"{name}: {_opening(known, line, measured)}",
        tuple(gains),
        tuple(_pairs(known)[:MOST_PAIRS]),
        tuple(_rest(known)),
        tuple(_hints(known)),
    )


def named_groups(reports: Sequence[Report]) -> Iterator[tuple[Report, GroupReport, str]]:
    """Give (report, group, its name) of each; where reports have groups of equal names, with the graph's number."""
    names = [group.name for report in reports for group in report.groups]
    graphs = 0
    for report in reports:
        for group in report.groups:
            twice = names.count(group.name) > 1
            yield report, group, f"graph {graphs + group.graph} {group.name}" if twice else group.name
        graphs += report.graphs


def report_text(report: Report) -> str:
    """Return the first screen of one report."""
    return str(describe([report]))


def _lines(screen: Screen) -> list[str]:
    lines = [screen.opening]
    if screen.gains:
        lines += ["", "changed, the largest saving first:"]
        lines += [f"  {gain.words}" for gain in screen.gains[:MOST_GROUPS]]
        left = len(screen.gains) - MOST_GROUPS
        lines += [f"  and {left} more"] if left > 0 else []
    if screen.apart:
        lines += ["", "still apart, the most expensive first:"]
        for pair in screen.apart:
            lines += [f"  {pair.words}", f"    [{pair.reason}] {pair.why}", f"    {pair.advice}"]
    if screen.rest:
        lines += ["", *screen.rest]
    return [*lines, *screen.hints]


def _wrapped(line: str) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [""]


def as_html(screen: Screen) -> str:
    """Return the same for a page or a notebook."""
    parts = [f"<p>{html.escape(screen.opening)}</p>"]
    if screen.gains:
        items = "".join(f"<li>{html.escape(gain.words)}</li>" for gain in screen.gains)
        parts.append(f"<h3>Changed, the largest saving first</h3><ol>{items}</ol>")
    if screen.apart:
        items = "".join(_pair_html(pair) for pair in screen.apart)
        parts.append(f"<h3>Still apart, the most expensive first</h3><ol>{items}</ol>")
    if screen.rest:
        items = "".join(f"<li>{html.escape(line)}</li>" for line in screen.rest)
        parts.append(f"<details><summary>the rest, by reason</summary><ul>{items}</ul></details>")
    return "".join([*parts, *(f"<p>{html.escape(hint)}</p>" for hint in screen.hints if hint)])


def _pair_html(pair: Apart) -> str:
    why = f"<b>[{pair.reason}]</b> {html.escape(pair.why)}"
    return f"<li>{html.escape(pair.words)}<br>{why}<br><i>{html.escape(pair.advice)}</i></li>"


# ---------------------------------------------------------------------------------------------------------
# The opening
# ---------------------------------------------------------------------------------------------------------


@cache
def _roofline(device: str) -> Roofline | None:
    """Return the roofline of a device, None for one that is not known."""
    try:
        return roofline(device)
    except ValueError:
        return None


def seconds_of(reports: Iterable[Report], line: Roofline | None) -> tuple[float, float] | None:
    """Return (seconds without Bridge, with it) at the device's best; None where the device is not known."""
    if line is None:
        return None
    reports = list(reports)
    before = sum(line.seconds(report.bytes_before, 0, report.kernels_before) for report in reports)
    return before, sum(line.seconds(report.bytes_after, 0, report.kernels_after) for report in reports)


def _opening(reports: list[Report], line: Roofline | None, measured: tuple[float, float] | None) -> str:
    parts = _figures(reports, line, measured)
    peaks = [max(getattr(report, f"peak_{when}") for report in reports) for when in ("before", "after")]
    parts += [f"peak memory {arrow(*map(amount, peaks))}"] if any(peaks) else []
    own = sum(report.total_seconds for report in reports)
    whole = sum(report.compile_seconds for report in reports)
    parts.append(f"compiled in {whole:.1f} s, {own:.1f} s of it Bridge" if whole else f"Bridge took {own:.1f} s")
    graphs, calls = sum(report.graphs for report in reports), sum(report.library_calls for report in reports)
    where = f" in {graphs} graphs" if graphs > 1 else ""
    uncounted = "" if not calls else " 1 library call is not counted." if calls == 1 else _UNCOUNTED.format(calls)
    return f"{'; '.join(parts)}{where}.{uncounted}"


_UNCOUNTED = " {} library calls are not counted."


def _figures(reports: list[Report], line: Roofline | None, measured: tuple[float, float] | None) -> list[str]:
    """Return kernels, bytes and times; without kernels only times that were measured."""
    kernels, moved = _sums(reports, "kernels"), _sums(reports, "bytes")
    times = measured or seconds_of(reports, line)
    how = "measured" if measured else f"expected at best on {line.device}" if line else ""
    if not any(kernels):
        return ["no kernel is generated", *([_times(measured, how)] if measured else [])]
    return [
        f"{arrow(*map(str, kernels))} kernel{'' if kernels == (1, 1) else 's'}",
        f"{arrow(*map(amount, moved))} moved",
        *([_times(times, how)] if times is not None else []),
    ]


def _sums(reports: list[Report], what: str) -> tuple[int, int]:
    before, after = (sum(getattr(report, f"{what}_{when}") for report in reports) for when in ("before", "after"))
    return before, after


def _times(times: tuple[float, float], how: str) -> str:
    return f"{arrow(*map(microseconds, times))} {how} ({_change(*times)})"


def _change(before: float, after: float) -> str:
    """Return by how much a time has changed; what the figures do not have, such as loops on a CPU, is not denied."""
    if before == after:
        return "the same without Bridge"
    percent = round(100 * (before - after) / before)
    if not percent:
        return "a change of less than 1%"
    return f"{percent}% less" if percent > 0 else f"{-percent}% more"


def arrow(before: str, after: str) -> str:
    """Return `4 -> 3`, or what is on both sides."""
    return before if before == after else f"{before} -> {after}"


def microseconds(seconds: float) -> str:
    """Return a time, readable."""
    return f"{1e6 * seconds:.1f} us" if seconds < 1e-3 else f"{1e3 * seconds:.2f} ms"


def amount(count: int) -> str:
    """Return bytes, readable."""
    if count >= 1 << 20:
        return f"{count / 2**20:.1f} MB"
    return f"{count / 2**10:.1f} KB" if count >= 1 << 10 else f"{count} B"


# ---------------------------------------------------------------------------------------------------------
# Groups
# ---------------------------------------------------------------------------------------------------------


def _gain(report: Report, group: GroupReport, name: str, line: Roofline | None) -> Gain:
    moved = arrow(amount(group.bytes_before), amount(group.bytes_after))
    what = _joined([kernel_words(report, group.graph, kernel) for kernel in group.kernels])
    words = f"{group.done} ({name}): {what}; {moved}"
    if line is None:
        return Gain(words, 0.0)
    before = line.seconds(group.bytes_before, 0, group.kernels_before)
    seconds = max(before - line.seconds(group.bytes_after, 0, group.kernels_after), 0.0)
    return Gain(f"{words}, {f'saves {microseconds(seconds)}' if seconds else _NOT_IN_FIGURES}", seconds)


def _joined(words: list[str]) -> str:
    """Return words with commas, each once, with how often it is there."""
    counted = Counter(words)
    shown = [word if n == 1 else f"{word} ({n} times)" for word, n in counted.items()]
    return ", ".join(shown[:4]) + (f" and {len(shown) - 4} more" if len(shown) > 4 else "")


def kernel_words(report: Report, graph: int, kernel: KernelReport) -> str:
    """Return `mean, rsqrt, mul` (model.py:12  the code) for a kernel."""
    names = [report.names[key] for node in kernel.nodes if (key := (graph, node)) in report.names]
    operations = list(dict.fromkeys(operation for name in names for operation in name.operations))
    places = [name.place for name in names if name.place is not None]
    words = ", ".join(operations[-MOST_OPERATIONS:]) or " + ".join(kernel.nodes)
    return f"{words} ({_shortened(source_line(*places[-1]))})" if places else words


def _shortened(code: str) -> str:
    return code.rstrip("([{") if len(code) <= CODE_WIDTH + 3 else code[:CODE_WIDTH].rstrip() + "..."


# ---------------------------------------------------------------------------------------------------------
# Pairs that stayed apart
# ---------------------------------------------------------------------------------------------------------


def _pairs(reports: list[Report]) -> list[Apart]:
    """Return the pairs of kernels that stayed apart, those that move most of the same first, each once."""
    found: dict[tuple[str, str], list[Apart]] = {}
    for report in reports:
        for group in report.groups:
            for pair in _pairs_of(report, group):
                found.setdefault((pair.words, pair.reason), []).append(pair)
    united = [_united(pairs) for pairs in found.values()]
    least = LEAST_OF_ALL * sum(report.bytes_after for report in reports)
    return sorted((pair for pair in united if pair.moved >= least), key=lambda pair: -pair.moved)


def _united(pairs: list[Apart]) -> Apart:
    first, times = pairs[0], f" ({len(pairs)} times)" if len(pairs) > 1 else ""
    moved = sum(pair.moved for pair in pairs)
    words = f"{first.words}{times}: {amount(moved)} are moved by both"
    return Apart(words, first.reason, first.why, first.advice, moved)


def _pairs_of(report: Report, group: GroupReport) -> list[Apart]:
    kernels, found = group.kernels_now, []
    for i, one in enumerate(kernels):
        for other in kernels[i + 1 :]:
            moved = sum(min(one.moved[name], other.moved[name]) for name in one.moved.keys() & other.moved.keys())
            if moved and one.launch != other.launch:
                found.append(_apart(report, group, (one, other), moved))
    return found


def _apart(report: Report, group: GroupReport, pair: tuple[KernelReport, KernelReport], moved: int) -> Apart:
    reason, detail = _why(group, pair)
    one, other = (kernel_words(report, group.graph, kernel) for kernel in pair)
    why = why_apart(reason, f"`{_short(one)}`", f"`{_short(other)}`")
    said = _in_users_words(report, group.graph, detail)
    guards = group.record.guards if group.record is not None else []
    change = f"It would fuse with {' or '.join(guards)}." if guards else advice(reason)
    return Apart(f"{one} and {other}", reason.name, f"{why}{said}", change, moved)


def _short(words: str) -> str:
    return words.partition(" (")[0]


#: Reasons whose detail has figures or names that the explanation has not.
_TELLING = {
    Reason.not_profitable,
    Reason.not_liftable,
    Reason.budget_exceeded,
    Reason.unsupported_op,
    Reason.unsupported_dtype,
}


#: A scheduler node, a kernel of several or a part of one (`op0_op3`, `op8_parts`), or a list of such names.
_NODE = re.compile(r"op\d+")
_NODES = re.compile(r"\bop\d+(?:_\w+)?\b")
_LIST = re.compile(r"\['op\d+'(?:, 'op\d+')*\]")

#: What stands around a name, and no apostrophe in a word.
_QUOTES = re.compile(r"(?<!\w)'|'(?!\w)")


def _in_users_words(report: Report, graph: int, detail: str) -> str:
    """Return a detail with operations in the place of scheduler nodes."""
    if not detail:
        return ""

    def named(found: re.Match[str]) -> str:
        known = [report.names.get((graph, node)) for node in _NODE.findall(found[0])]
        last = [name.operations[-1] for name in known if name is not None and name.operations]
        return f"`{', '.join(dict.fromkeys(last))}`" if last else "a kernel"

    return " (" + _QUOTES.sub("", _NODES.sub(named, _LIST.sub(named, without_place(detail)))) + ")"


def _why(group: GroupReport, pair: tuple[KernelReport, KernelReport]) -> tuple[Reason, str]:
    """Return the reason that is nearest to a pair: a remark at one of its nodes, else what was said of its kernels."""
    nodes = {node for kernel in pair for node in kernel.nodes}
    said = [entry for entry in group.apart if _is_about(entry[1], pair)]
    remarks = [(Reason[reason], "") for reason, _, where in group.remarks if find_place(where, {})[0] in nodes]
    own = [(group.reason, group.detail)] if group.reason is not None else []
    general = [entry for entry in [*own, *group.apart[-1:]] if not _NODE.search(entry[1]) or _is_about(entry[1], pair)]
    launches = [entry for entry in group.own_launches if _is_about(entry[1], pair)]
    between = [(Reason.cycle_through_other_node, "")] if _is_between(group, pair) else []
    reasons = [*said[-1:], *between, *remarks[-1:], *general, *launches[-1:], (Reason.no_common_band, "")]
    reason, detail = reasons[0]
    return reason, detail if reason in _TELLING else ""


def _is_between(group: GroupReport, pair: tuple[KernelReport, KernelReport]) -> bool:
    """Return True if another kernel of the group, or several, need the one and are needed by the other."""
    one, other = pair
    waiting = set(one.written)
    for kernel in group.kernels_now:
        if kernel is not one and kernel is not other and waiting & (kernel.moved.keys() - kernel.written):
            waiting |= kernel.written
    return bool((waiting - one.written) & other.moved.keys())


def _is_about(detail: str, pair: tuple[KernelReport, KernelReport]) -> bool:
    """Return True if a detail names nodes of both kernels, or one node alone; what names several is of those alone."""
    named = set(_NODE.findall(detail))
    touched = [bool(named.intersection(kernel.nodes)) for kernel in pair]
    return all(touched) or (len(named) == 1 and any(touched))


# ---------------------------------------------------------------------------------------------------------
# The rest
# ---------------------------------------------------------------------------------------------------------


#: The number that a graph gives to the second `add`.
_NUMBER = re.compile(r"^(\w+?)_\d+ \(")


def _rest(reports: list[Report]) -> list[str]:
    """Return a line for what was changed in no group, and one for the kernels that could not take part, by reason."""
    lines = [f"also, in no figure above: {choice}" for choice in _counted(c for r in reports for c in r.choices)]
    reasons = Counter(reason for report in reports for reason in _reasons(report))
    del reasons[Reason.extern_kernel]  # the opening has counted them
    for reason, count in (+reasons).most_common():
        lines.append(f"left alone, {count}: [{reason.name}] {explanation(reason)}")
    several = any(report.kernels_before > 1 for report in reports)
    return lines or ([_NOTHING] if several and _are_alone(reports) else [])


def _counted(lines: Iterable[str]) -> list[str]:
    """Return lines that name nodes, each once for all nodes of one operation and place."""
    counts = Counter(_NUMBER.sub(r"\1 (", line) for line in lines)
    return [line + (f" ({n} times)" if n > 1 else "") for line, n in counts.items()]


_NOTHING = "nothing to fuse: no two neighbouring kernels use the same tensor"


def _are_alone(reports: list[Report]) -> bool:
    """Return True if every kernel was looked at, and none has a neighbour that it could be fused with."""
    refused = {refusal.reason for report in reports for refusal in report.refusals}
    return refused <= {Reason.extern_kernel} and not any(
        group.fused or len(group.kernels_now) > 1 for report in reports for group in report.groups
    )


def _reasons(report: Report) -> Iterator[Reason]:
    """Yield why kernels could not take part, and what went wrong in groups."""
    yield from (refusal.reason for refusal in report.refusals if refusal.reason is not Reason.training_graph)
    for group in report.groups:
        said = {reason for reason, _ in group.faults} | ({group.reason} if group.reason is not None else set())
        yield from said & FAULTS


def _hints(reports: list[Report]) -> list[str]:
    hints = _counted(note for report in reports for note in report.notes)[:MOST_NOTES]
    training = [r for report in reports for r in report.refusals if r.reason is Reason.training_graph]
    if training:
        hints.append(f"{len(training)} graph{'s' if len(training) > 1 else ''} not looked at: {TRAINING_HINT}")
    return ["", *hints] if hints else []
