"""Hold the result of one case of a generator."""

from __future__ import annotations

import dataclasses
import enum
import json
from typing import Any


class Verdict(enum.Enum):
    """Say what became of a case. `FAILURES` are those that Bridge answers for."""

    fused = "Bridge emitted a kernel of its own, and the results are as good as Inductor's"
    restructured = "Bridge changed a kernel that stays Inductor's (persistent rows), and the results are as good"
    refused = "Bridge looked at several kernels and left them as they are, for the reasons given"
    same = "nothing to fuse: Inductor emits one kernel, or none"
    skipped = "the case does not run without Bridge either: eager or Inductor refuses it"
    wrong = "results differ from eager's by more than Inductor's do"
    worse = "right, but more kernels or a higher peak of memory than Inductor's"
    crash = "compiles or runs with Inductor, and not with Bridge"
    internal_error = "a step of Bridge failed; the graph went on without it"
    hang = "no result within the time limit, where Inductor gives one"


FAILURES = frozenset({Verdict.wrong, Verdict.worse, Verdict.crash, Verdict.internal_error, Verdict.hang})


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Hold the result of one case.

    case: its name, which makes it again; detail: what went wrong, or why it was skipped, in one line; reasons: names of
    `bridge.reasons.Reason`, one for each refusal; figures: numbers to add up or to compare (kernels, bytes, errors);
    seconds: wall time.
    """

    case: str
    verdict: Verdict
    detail: str = ""
    reasons: tuple[str, ...] = ()
    figures: dict[str, float] = dataclasses.field(default_factory=dict)
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        return self.verdict in FAILURES

    def to_json(self) -> str:
        return json.dumps({**dataclasses.asdict(self), "verdict": self.verdict.name})

    @staticmethod
    def from_json(line: str) -> Outcome:
        fields: dict[str, Any] = json.loads(line)
        fields |= {"verdict": Verdict[fields["verdict"]], "reasons": tuple(fields["reasons"])}
        return Outcome(**fields)
