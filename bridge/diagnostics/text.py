"""Write an explanation as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..reasons import without_place
from .first_screen import amount
from .source_lines import source_line

if TYPE_CHECKING:
    from .explanation import ExampleAccess, ExplainedRefusal, Explanation, GroupExplanation
    from .recording import Buffer, Statement


def as_text(explanation: Explanation) -> str:
    """Return the whole of it, a paragraph for each group."""
    if not explanation.graphs:
        return f"{explanation.name}: nothing was compiled"
    kernels = f"{explanation.kernels_before} kernels with Inductor, {explanation.kernels_after} with Bridge"
    fused = f"{sum(group.fused for group in explanation.groups)} of {len(explanation.groups)} groups fused"
    lines = [f"{explanation.name} for {explanation.target}: {kernels}; {fused}"]
    lines.append(f"  roofline of {explanation.roofline.device}: {explanation.roofline}")
    for group in explanation.groups:
        lines += ["", *_group(group)]
    if explanation.others or explanation.choices:
        lines.append("")
    lines += [f"{other.node or 'everything'}: left alone [{other.reason}] {other.text}" for other in explanation.others]
    return "\n".join([*lines, *explanation.choices])


def _group(group: GroupExplanation) -> list[str]:
    if group.fused:
        head = f"{group.kernels_before} -> {group.kernels_after} kernels: {group.done}"
    else:
        head = f"not fused [{group.reason}] {without_place(group.detail)}"
    return [
        f"{group.name}: {head}",
        *_section(_before(group), _statements(group.statements)),
        *_section("between them", [_buffer(name, buffer, group) for name, buffer in group.buffers.items()]),
        *_section(
            "transformations" if group.fused else "transformations tried",
            [f"{t.name}: {t.meaning} ({t.counts})" for t in group.transformations],
        ),
        *_section("refused" if not group.fused else "refused on the way", _refusals(group.refusals)),
        *_section("would fuse with", group.guards),
        *_section("decisions", group.decisions),
        *_section("proven again", group.certificate),
        *_section("numbers", _numbers(group)),
    ]


def _before(group: GroupExplanation) -> str:
    """Return what the statements are, in the kernels of Inductor's own."""
    one = len({statement.kernel for statement in group.statements}) == 1
    return "what Inductor has in one kernel" if one else "what Inductor left apart"


def _section(title: str, lines: list[str]) -> list[str]:
    return [f"  {title}:", *(f"    {line}" for line in lines)] if lines else []


def _statements(statements: list[Statement]) -> list[str]:
    spaces = [space(statement) for statement in statements]
    width = max(map(len, spaces))
    lines = []
    for statement, text in zip(statements, spaces, strict=True):
        places = [source_line(*where) for where in statement.lines] or ["(no source line)"]
        head = f"kernel {statement.kernel}  {statement.name:6} {text:{width}}  "
        lines += [head + places[0], *(" " * len(head) + place for place in places[1:])]
    return lines


def space(statement: Statement) -> str:
    """Return `[2048] reduces [8192]`, the iteration space of a statement."""
    text = f"[{', '.join(statement.iterations)}]"
    return f"{text} reduces [{', '.join(statement.reduced)}]" if statement.reduced else text


def _buffer(name: str, buffer: Buffer, group: GroupExplanation) -> str:
    writers = ", ".join(s.name for s in group.statements if name in s.writes)
    readers = ", ".join(s.name for s in group.statements if name in s.reads)
    kept = "used by nothing else" if buffer.temporary else "used outside, too"
    shape = f"{buffer.dtype}[{', '.join(buffer.shape)}]"
    return f"{name}: {shape}, {amount(buffer.bytes)}, written by {writers}, read by {readers}; {kept}"


def _refusals(refusals: list[ExplainedRefusal]) -> list[str]:
    lines = []
    for refusal in refusals:
        lines.append(f"[{refusal.reason}] {refusal.node}: {refusal.text}{_at(refusal.source)}")
        lines += [
            f"  {'for example' if i == 0 else '        and'} {_access(a)}" for i, a in enumerate(refusal.accesses)
        ]
    return lines


def _access(access: ExampleAccess) -> str:
    return f"{access.node} {access.words}{_at(access.source)}"


def _at(source: str) -> str:
    return f"  ({source})" if source else ""


def _numbers(group: GroupExplanation) -> list[str]:
    moved = f"moves {amount(group.bytes_before)} -> {amount(group.bytes_after)}"
    times = f"{1e6 * group.seconds_before:.1f} us -> {1e6 * group.seconds_after:.1f} us expected at best"
    lines = [f"{moved} (one kernel would move {amount(group.bytes_if_one)}); {times}"]
    for used in group.resources:
        config = ", ".join(f"{name}={value}" for name, value in used.config.items())
        shared = f"{used.shared_bytes} bytes shared"
        lines.append(f"{used.kernel}: {used.registers} registers, {used.spills} spills, {shared} ({config})")
    return lines
