"""For `bridge bench --corpus`: a process that reads names of patterns and writes a record for each, as JSON lines.

Run by `pool.py`: a crash or a hang of a pattern ends this process and nothing else.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from .journal import Record
from .patterns import Corpus


def main(folder: str, device: str) -> None:
    """Answer until the input ends; device: "offline", or what `bridge.bench.corpus.measured` knows."""
    # What patterns and compilers print must not mix with the records.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    corpus = Corpus(Path(folder))
    make = _maker(device)
    for line in sys.stdin:
        print(json.dumps(make(corpus, line.strip())), file=answers, flush=True)


def _maker(device: str) -> Callable[[Corpus, str], Record]:
    if device == "offline":
        from .compiled import compile_offline  # weight: the other of the two is not needed

        return compile_offline
    from .measured import measure  # weight: the other of the two is not needed

    return measure


if __name__ == "__main__":
    main(*sys.argv[1:])
