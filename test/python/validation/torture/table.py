"""Write the table operator x context x dtype of op_db.py, from the outcomes of runs.

    python -m torture.table GPU/op_db-cuda.jsonl torture/op_db-triton.jsonl --out docs/results/op_db.tsv
    python -m torture.table docs/results/op_db.tsv torture/op_db-triton.jsonl --out docs/results/op_db.tsv

Of a program that several journals have, the last one's outcome counts: it may have been mended since. A table of before
stands for the journals that it was made of. A line for each
operator and variant, a column for each context, and in it a character for each type that says what became of the case:
the legend is on top. A cell is never blank: what was not run is a dot.
"""

from __future__ import annotations

import argparse
import re
import string
from collections.abc import Iterable
from pathlib import Path

import torch

from . import op_db
from .contexts import CONTEXTS
from .journal import Journal
from .operators import DTYPES
from .outcome import Outcome, Verdict

MARKS = {
    Verdict.fused: "F",
    Verdict.restructured: "P",
    Verdict.same: "=",
    Verdict.skipped: "_",
    Verdict.wrong: "W",
    Verdict.worse: "M",
    Verdict.crash: "C",
    Verdict.internal_error: "I",
    Verdict.hang: "H",
}
NO_SUCH_TYPE, NOT_RUN = "-", "."


def _reason(outcome: Outcome) -> str:
    """Return the first reason: that of a group, where there was one."""
    return outcome.reasons[0] if outcome.reasons else "none"


def _letters(outcomes: Iterable[Outcome]) -> dict[str, str]:
    """Return a small letter, or a digit, for each reason."""
    reasons = sorted({_reason(o) for o in outcomes if o.verdict is Verdict.refused})
    return dict(zip(reasons, string.ascii_lowercase + string.digits, strict=False))


def _legend(letters: dict[str, str], targets: str, ran: int, names: int) -> list[str]:
    marks = [f"{mark}: {verdict.name}, {verdict.value}" for verdict, mark in MARKS.items()]
    reasons = [f"{letter}: refused, {reason}" for reason, letter in letters.items()]
    return [
        f"# op_db, {targets}: {ran} of {names} programs of torch {torch.__version__}; by `python -m torture.table`",
        f"# a character for each type of {' '.join(DTYPES)}",
        *(f"# {line}" for line in (*marks, *reasons)),
        f"# {NO_SUCH_TYPE}: the operator does not take the type",
        f"# {NOT_RUN}: not run",
    ]


def table(outcomes: dict[str, Outcome], targets: str) -> str:
    """Return the table's text; outcomes: by case; targets: what ran them."""
    names = op_db.names("triton")  # Those of all targets.
    ran = [outcomes[name] for name in names if name in outcomes]
    letters = _letters(ran)
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for name in names:
        op, variant, dtype, context, *_ = name.split("/")
        cells.setdefault((f"{op}/{variant}", context), {})[dtype] = _mark(outcomes.get(name), letters)
    lines = ["\t".join(("operator", *CONTEXTS))]
    for operator in sorted({operator for operator, _ in cells}):
        found = [cells[operator, context] for context in CONTEXTS]
        lines.append("\t".join((operator, *("".join(f.get(d, NO_SUCH_TYPE) for d in DTYPES) for f in found))))
    return "\n".join([*_legend(letters, targets, len(ran), len(names)), *lines]) + "\n"


def outcomes_of(text: str) -> tuple[dict[str, Outcome], str]:
    """Return (the outcomes that a table's text has, by case; what ran them)."""
    head, lines = ([line for line in text.splitlines() if line.startswith("#") is wanted] for wanted in (True, False))
    reasons = dict(re.findall(r"^# (\S): refused, (\w+)$", "\n".join(head), re.MULTILINE))
    marks = {mark: verdict for verdict, mark in MARKS.items()}
    cells = {cell[0]: dict(zip(CONTEXTS, cell[1:], strict=True)) for cell in (line.split("\t") for line in lines[1:])}
    found = {}
    for name in op_db.names("triton"):
        op, variant, dtype, context, *_ = name.split("/")
        cell = cells.get(f"{op}/{variant}", {}).get(context, NOT_RUN * len(DTYPES))
        mark = cell[list(DTYPES).index(dtype)]
        if mark in reasons:
            found[name] = Outcome(name, Verdict.refused, reasons=(reasons[mark],))
        elif mark in marks:
            found[name] = Outcome(name, marks[mark])
    return found, head[0].removeprefix("# op_db, ").partition(": ")[0]


def _mark(outcome: Outcome | None, letters: dict[str, str]) -> str:
    if outcome is None:
        return NOT_RUN
    return letters[_reason(outcome)] if outcome.verdict is Verdict.refused else MARKS[outcome.verdict]


def main() -> None:
    parser = argparse.ArgumentParser(
        "torture.table", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("journals", nargs="+", type=Path, help="op_db-TARGET.jsonl, or a table; later ones overrule")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    outcomes: dict[str, Outcome] = {}
    targets: list[str] = []
    for path in options.journals:
        if path.suffix == ".tsv":
            found, names = outcomes_of(path.read_text(encoding="utf-8"))
        else:  # The target stands in the journal's name.
            found, names = Journal(path).outcomes, path.stem.rpartition("-")[2]
        outcomes |= found
        targets += names.split(", ")
    options.out.write_text(table(outcomes, ", ".join(dict.fromkeys(targets))), encoding="utf-8")


if __name__ == "__main__":
    main()
