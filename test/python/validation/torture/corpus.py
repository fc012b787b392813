"""Generate the patterns of a public corpus, read from a checkout outside of the repository, in BRIDGE_CORPUS.

Target "triton" generates code for an H100 with and without Bridge, "cuda" also runs it. There are no cases for "cpp",
and none where BRIDGE_CORPUS is not set.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bridge.bench.corpus.compiled import compile_offline
from bridge.bench.corpus.patterns import Corpus

from .outcome import Outcome, Verdict

TIME_LIMIT = 600.0
CASES_A_PROCESS = 150

#: Numbers of a record that are kept of a case.
_FIGURES = ("inductor", "bridge", "inductor_us", "bridge_us", "oracle_us", "over_inductor", "over_oracle")


@functools.cache
def _corpus() -> Corpus:
    return Corpus(Path(os.environ["BRIDGE_CORPUS"]))


def names(target: str) -> Sequence[str]:
    """Return all patterns, by the hash that their names end with."""
    return _corpus().names() if target in ("triton", "cuda") and "BRIDGE_CORPUS" in os.environ else []


def run(name: str, target: str) -> Outcome:
    """Compile a pattern, and on a GPU run and time it."""
    if target == "cuda":
        from bridge.bench.corpus.measured import measure

        return outcome(measure(_corpus(), name))
    return outcome(compile_offline(_corpus(), name))


def outcome(record: dict[str, Any]) -> Outcome:
    """Return a record of `bridge bench --corpus` as a case."""
    figures = {key: float(record[key]) for key in _FIGURES if key in record}
    moved = [group["bytes"][0] for group in record.get("apart", ())]
    return Outcome(
        record["pattern"],
        Verdict[record["status"]],
        " ".join(record["detail"].split())[:500],
        tuple(record.get("reasons", ())),
        figures | {"bytes_apart": float(sum(moved))},
        record["seconds"],
    )
