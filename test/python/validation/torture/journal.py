"""Keep outcomes in a file, a line each, so that a run of hours goes on where it was stopped."""

from __future__ import annotations

import collections
from collections.abc import Iterable
from pathlib import Path

from bridge.bench.corpus.journal import complete_lines

from .outcome import FAILURES, Outcome, Verdict


class Journal:
    """Hold the outcomes of one generator and target, in a file that is only added to."""

    def __init__(self, path: Path):
        self.path = path
        self.outcomes: dict[str, Outcome] = {}
        for line in complete_lines(path):
            self._keep(Outcome.from_json(line))

    def add(self, outcome: Outcome) -> None:
        self._keep(outcome)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(outcome.to_json() + "\n")

    def missing(self, names: Iterable[str], again: bool) -> list[str]:
        """Return the cases without an outcome; with `again`, failures too, as they may have been mended."""
        return [n for n in names if n not in self.outcomes or (again and self.outcomes[n].failed)]

    def _keep(self, outcome: Outcome) -> None:
        self.outcomes[outcome.case] = outcome


def summary(outcomes: Iterable[Outcome]) -> str:
    """Return counts by verdict, counts by reason, the sums of all figures, and each failure in a line."""
    outcomes = list(outcomes)
    verdicts = collections.Counter(o.verdict for o in outcomes)
    lines = [f"{len(outcomes)} programs: " + ", ".join(f"{verdicts[v]} {v.name}" for v in Verdict if verdicts[v])]
    reasons = collections.Counter(reason for o in outcomes for reason in o.reasons)
    if reasons:
        lines.append("reasons: " + ", ".join(f"{count} {name}" for name, count in reasons.most_common()))
    lines += [f"FAILED {o.verdict.name} {o.case}: {o.detail}" for o in outcomes if o.verdict in FAILURES]
    return "\n".join(lines)
