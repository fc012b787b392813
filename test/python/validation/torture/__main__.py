"""Run programs of others through Bridge, Inductor and eager.

    python -m torture op_db                           # all programs, C++ and interpreted Triton; hours
    python -m torture op_db --sample 40 --seed 7      # some of them, by seed
    python -m torture op_db --target cuda --minutes 8 # on a GPU, for as long as there is time
    python -m torture op_db --only NAME               # one program

`torture` is in test/python/validation/ and needs test/python/support/: both have to be in PYTHONPATH.
A run that was stopped goes on where it was: outcomes are kept in RESULTS (default: torture/), a file for each generator
and target. The exit status is 1 if a program failed.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import sys
import time
from pathlib import Path

from .generator import GENERATORS, load
from .journal import Journal, summary
from .outcome import Outcome
from .pool import run_all

TARGETS = ("cpp", "triton", "cuda")

#: Cases between two lines of progress.
_EACH = 100


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("torture", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("generators", nargs="+", choices=GENERATORS)
    parser.add_argument("--target", nargs="+", default=["cpp", "triton"], choices=TARGETS)
    parser.add_argument("--sample", type=int, help="this many cases of each target, by seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shard", default="0/1", help="K/N: every N-th case, from the K-th on")
    parser.add_argument("--only", nargs="+", default=[], help="names of cases")
    parser.add_argument("--again", action="store_true", help="run failures of before once more")
    parser.add_argument("--until-failure", action="store_true", help="end at the first program that fails")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--results", type=Path, default=Path("torture"))
    return parser.parse_args()


def chosen(generator: str, target: str, sample: int | None = None, seed: int = 0, shard: str = "0/1") -> list[str]:
    """Return names of cases: all, or some by seed; of those every N-th from the K-th on, for a shard K/N."""
    names = list(load(generator).names(target))
    if sample is not None:
        names = random.Random(seed).sample(names, min(sample, len(names)))
    first, shards = map(int, shard.split("/"))
    return names[first::shards]


def _run_target(generator: str, target: str, options: argparse.Namespace, until: float) -> list[Outcome]:
    """Return outcomes of all chosen cases, those of earlier runs among them."""
    names = options.only or chosen(generator, target, options.sample, options.seed, options.shard)
    journal = Journal(options.results / f"{generator}-{target}.jsonl")
    missing = names if options.only else journal.missing(names, options.again)
    progress = Progress(f"{generator} {target}", len(missing))
    for outcome in run_all(generator, missing, target, options.workers):
        journal.add(outcome)
        progress.show(outcome)
        if time.monotonic() > until or (outcome.failed and options.until_failure):
            break
    return [journal.outcomes[name] for name in names if name in journal.outcomes]


class Progress:
    """Print each failure as it comes, and now and then how far the run is."""

    def __init__(self, what: str, cases: int):
        self._what, self._cases, self._start = what, cases, time.monotonic()
        self._verdicts: collections.Counter[str] = collections.Counter()

    def show(self, outcome: Outcome) -> None:
        self._verdicts[outcome.verdict.name] += 1
        done = sum(self._verdicts.values())
        if outcome.failed:
            print(f"{self._what} {outcome.verdict.name} {outcome.case}: {outcome.detail}", flush=True)
        if done % _EACH == 0 or done == self._cases:
            rate = done / (time.monotonic() - self._start) * 60
            counts = ", ".join(f"{n} {name}" for name, n in self._verdicts.most_common())
            print(f"{self._what} {done}/{self._cases}, {rate:.0f} a minute: {counts}", flush=True)


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
