"""Runs programs of others through Bridge, Inductor and eager.

    python -m torture op_db                           # all programs, C++ and interpreted Triton; hours
    python -m torture op_db --sample 40 --seed 7      # some of them, by seed
    python -m torture op_db --target cuda --minutes 8 # on a GPU, for as long as there is time
    python -m torture op_db --only NAME               # one program

A run that was stopped goes on where it was: outcomes are kept in RESULTS (default: torture/), a file for each generator
and target. The exit status is 1 if a program failed.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from .generator import GENERATORS, load
from .journal import Journal, summary
from .outcome import Outcome
from .pool import run_all

TARGETS = ("cpp", "triton", "cuda")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("torture", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("generators", nargs="+", choices=GENERATORS)
    parser.add_argument("--target", nargs="+", default=["cpp", "triton"], choices=TARGETS)
    parser.add_argument("--sample", type=int, help="this many cases of each target, by seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shard", default="0/1", help="K/N: every N-th case, from the K-th on")
    parser.add_argument("--only", nargs="+", default=[], help="names of cases")
    parser.add_argument("--again", action="store_true", help="run failures of before once more")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--results", type=Path, default=Path("torture"))
    return parser.parse_args()


def _chosen(names: Iterable[str], options: argparse.Namespace) -> list[str]:
    if options.only:
        return list(options.only)
    names = list(names)
    if options.sample is not None:
        names = random.Random(options.seed).sample(names, min(options.sample, len(names)))
    shard, shards = map(int, options.shard.split("/"))
    return names[shard::shards]


def _run_target(generator: str, target: str, options: argparse.Namespace, until: float) -> list[Outcome]:
    """Outcomes of all chosen cases, those of earlier runs among them."""
    names = _chosen(load(generator).names(target), options)
    journal = Journal(options.results / f"{generator}-{target}.jsonl")
    missing = journal.missing(names, options.again) if not options.only else names
    for done, outcome in enumerate(run_all(generator, missing, target, options.workers), 1):
        journal.add(outcome)
        _show(f"{generator} {target} {done}/{len(missing)}", outcome)
        if time.monotonic() > until:
            break
    return [journal.outcomes[name] for name in names if name in journal.outcomes]


def _show(progress: str, outcome: Outcome) -> None:
    line = f"{progress} {outcome.verdict.name} {outcome.case}"
    if outcome.failed:
        print(f"{line}: {outcome.detail}", flush=True)
    elif sys.stderr.isatty():
        print(f"\r\x1b[K{line[:110]}", end="", file=sys.stderr, flush=True)


def main() -> int:
    options = _arguments()
    until, failed = time.monotonic() + 60 * options.minutes, False
    for generator in options.generators:
        for target in options.target:
            outcomes = _run_target(generator, target, options, until)
            print(f"\n{generator}, {target}: {summary(outcomes)}", flush=True)
            failed |= any(outcome.failed for outcome in outcomes)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
