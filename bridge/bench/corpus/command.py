"""For `bridge bench --corpus`: run the patterns that are asked for, and print what became of them."""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from .. import gpu_measurements
from . import tables
from .journal import Journal, Record
from .patterns import Corpus
from .pool import run_all

#: What Bridge answers for.
FAILURES = frozenset({"wrong", "worse", "crash", "internal_error", "hang"})

#: Seconds for one pattern, after which it counts as hung.
TIME_LIMIT = 600.0


def run(options: argparse.Namespace) -> int:
    """Return the exit status: 1 if a pattern failed."""
    corpus = Corpus(options.corpus)
    names = chosen(corpus.names(), options.only, options.shard)
    if options.list:
        print("\n".join(names))
        return 0
    device = "gpu" if gpu_measurements.has_gpu() and not options.offline else "offline"
    journal = Journal((options.out or Path("corpus")) / f"{device}.jsonl")
    _run_missing(corpus, [n for n in names if n not in journal.records], journal, (device, options))
    records = [journal.records[name] for name in names if name in journal.records]
    tables.save(records, len(corpus.names()), journal.path.parent)
    print(summary(records))
    return int(any(record["status"] in FAILURES for record in records))


def chosen(names: list[str], parts: Iterable[str], shard: str) -> list[str]:
    """Return the names with such a part, every N-th from the K-th on for a shard "K/N"."""
    parts = list(parts)
    names = [name for name in names if not parts or any(part in name for part in parts)]
    first, step = map(int, shard.split("/"))
    return names[first::step]


def _run_missing(corpus: Corpus, missing: list[str], journal: Journal, how: tuple[str, argparse.Namespace]) -> None:
    device, options = how
    until = time.monotonic() + 60 * options.minutes
    arguments = [str(corpus.folder), device]
    workers = options.workers or os.cpu_count() or 1
    more = lambda: time.monotonic() < until
    for number, record in enumerate(run_all(missing, arguments, workers, TIME_LIMIT, more), 1):
        journal.add(record)
        print(f"[{number}/{len(missing)}] {line(record)}", flush=True)


def line(record: Record) -> str:
    """Return one pattern's result in a line."""
    kernels = f" {record['inductor']} -> {record['bridge']} kernels" if "inductor" in record else ""
    words = f": {record['detail']}" if record.get("detail") else ""
    return f"{record['pattern']} {record['status']}{kernels}{words}"


def summary(records: list[Record]) -> str:
    """Return counts of patterns by status, kernels, and failures."""
    counts = Counter(record["status"] for record in records)
    compiled = [record for record in records if "inductor" in record]
    theirs, ours = (sum(record[side] for record in compiled) for side in ("inductor", "bridge"))
    lines = [
        f"{len(records)} patterns: " + ", ".join(f"{number} {name}" for name, number in counts.most_common()),
        f"kernels of {len(compiled)}: {theirs} -> {ours}",
    ]
    return "\n".join(lines + [f"FAILED {line(record)}" for record in records if record["status"] in FAILURES])
