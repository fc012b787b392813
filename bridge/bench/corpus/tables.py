"""For `bridge bench --corpus` and docs/results/corpus.md: records as tables, and a line for each pattern."""

from __future__ import annotations

import datetime
import importlib.metadata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import torch

from ..results import geometric_mean
from .journal import Record

Records = list[Record]

#: Columns of the lines: what is missing of a pattern is left empty.
COLUMNS = (
    "pattern", "status", "inductor", "bridge", "reasons", "inductor_us", "bridge_us", "oracle_us", "over_inductor",
    "over_oracle",
)  # fmt: skip

#: Gaps that are listed, and Bridge's time over Inductor's that is too much.
GAPS, TOO_SLOW = 20, 1 / 0.98


def save(records: Records, total: int, folder: Path) -> None:
    """Write corpus.md and corpus.tsv; total: patterns of the corpus."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "corpus.md").write_text("\n".join(describe(records, total)) + "\n")
    (folder / "corpus.tsv").write_text("\n".join(lines(records)) + "\n")


def lines(records: Records) -> Iterator[str]:
    """Yield a line for each pattern, its fields with tabs between."""
    yield "\t".join(COLUMNS)
    for record in records:
        fields = record | {"reasons": " ".join(record.get("reasons", ()))}
        yield "\t".join(_field(fields.get(column, "")) for column in COLUMNS)


def _field(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def describe(records: Records, total: int) -> Iterator[str]:
    """Yield the lines of a section: patterns, kernels, reasons of what stays apart, the largest gaps, times."""
    date = datetime.datetime.now(datetime.timezone.utc).date()
    yield f"{date}; torch {torch.__version__}; Triton {importlib.metadata.version('triton')}; "
    yield f"{len(records)} of {total} patterns, the first inputs of each.\n"
    yield from _statuses(records)
    yield from _reasons(records)
    yield from _gaps(records)
    yield from _times(records)


def _statuses(records: Records) -> Iterator[str]:
    yield "| patterns | number | kernels, Inductor | Bridge |\n|---|---|---|---|"
    for status in [*sorted({record["status"] for record in records}), "all"]:
        chosen = [r for r in records if status in (r["status"], "all")]
        theirs, ours = (sum(record.get(side, 0) for record in chosen) for side in ("inductor", "bridge"))
        yield f"| {status} | {len(chosen)} | {theirs} | {ours} |"


def apart(records: Records) -> Records:
    """Return the records of which several kernels are left."""
    return [record for record in records if record.get("bridge", 0) > 1]


def _reasons(records: Records) -> Iterator[str]:
    left = apart(records)
    counts = Counter(reason for record in left for reason in record["reasons"])
    yield f"\nOf {len(left)} patterns several kernels are left; a pattern may have more than one reason.\n"
    yield "| reason | patterns |\n|---|---|"
    yield from (f"| {reason} | {count} |" for reason, count in counts.most_common())


def _gaps(records: Records) -> Iterator[str]:
    """Yield the patterns with most kernels, and among these those that could move fewest bytes instead."""
    yield "\n| the largest gaps | kernels | MB that groups move | in one | reasons |\n|---|---|---|---|---|"
    for record in sorted(apart(records), key=lambda r: (-r["bridge"], -_bytes(r, 0)))[:GAPS]:
        moved = " | ".join(f"{_bytes(record, k) / 2**20:.1f}" for k in (0, 1))
        kernels = f"{record['inductor']} -> {record['bridge']}"
        yield f"| {record['pattern']} | {kernels} | {moved} | {', '.join(record['reasons'])} |"


def _bytes(record: Record, which: int) -> int:
    return sum(group["bytes"][which] for group in record["apart"])


def _times(records: Records) -> Iterator[str]:
    """Yield geometric means of times; nothing of a run without a GPU."""
    for side in ("inductor", "oracle"):
        ratios = {r["pattern"]: r[f"over_{side}"] for r in records if f"over_{side}" in r}
        if not ratios:
            continue
        slow = {name: ratio for name, ratio in ratios.items() if ratio > TOO_SLOW}
        yield f"\nTime over the {side}'s: {geometric_mean(ratios.values()):.3f} ({len(ratios)} patterns); "
        yield f"{len(slow)} above {TOO_SLOW:.3f}."
        if side == "inductor":
            yield from (f"- {name}: {ratio:.3f}" for name, ratio in sorted(slow.items(), key=lambda item: -item[1]))
