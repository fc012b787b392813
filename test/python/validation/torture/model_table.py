"""Write the outcomes of models as a table: a line for each architecture and mode that was looked at.

python -m torture.model_table torture/models-*.jsonl --out docs/results/models_zoo.tsv
python -m torture.model_table docs/results/models_zoo.tsv torture/models-triton.jsonl --out docs/results/models_zoo.tsv

A table of before stands for the journals that it was made of.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from .journal import Journal
from .outcome import Outcome

COLUMNS = (
    "architecture", "mode", "target", "verdict", "kernels_before", "kernels_after", "peak_before", "peak_after",
    "error_ratio", "detail",
)  # fmt: skip


def rows(paths: Iterable[Path]) -> list[tuple[str, ...]]:
    """Return one row a model, mode and target, sorted; what stands in a later file counts."""
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    for path in paths:
        found |= {row[:3]: row for row in _rows_of(path)}
    return sorted(found.values())


def _rows_of(path: Path) -> list[tuple[str, ...]]:
    """Return the rows of a table, or of a journal, whose name has the target."""
    if path.suffix == ".tsv":
        return [tuple(line.split("\t")) for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    target = path.stem.rpartition("-")[2]
    return [_row(outcome, target) for outcome in Journal(path).outcomes.values()]


def _row(outcome: Outcome, target: str) -> tuple[str, ...]:
    architecture, _, mode = outcome.case.partition(" ")
    figures = ("kernels_before", "kernels_after", "peak_before", "peak_after")
    counted = [f"{outcome.figures[name]:.0f}" if name in outcome.figures else "-" for name in figures]
    ratio = f"{outcome.figures['ratio']:.3f}" if "ratio" in outcome.figures else "-"
    detail = " ".join(outcome.detail.split())[:160] or "-"
    return (architecture, mode, target, outcome.verdict.name, *counted, ratio, detail)


def main() -> None:
    parser = argparse.ArgumentParser(
        "torture.model_table", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("journals", nargs="+", type=Path, help="or a table; later ones overrule")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    lines = ["\t".join(row) for row in (COLUMNS, *rows(options.journals))]
    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
