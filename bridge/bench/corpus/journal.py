"""For `bridge bench --corpus`: records of patterns in a file, a line each, so that a stopped run can go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeAlias

#: What became of a pattern, as JSON: its name, its status and figures.
Record: TypeAlias = dict[str, Any]


class Journal:
    """The records in a file that is only added to; the last one of a pattern counts."""

    def __init__(self, path: Path):
        self.path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.records: dict[str, Record] = {r["pattern"]: r for r in map(json.loads, lines)}

    def add(self, record: Record) -> None:
        """Append a record to the file; an earlier one of the same pattern no longer counts."""
        self.records[record["pattern"]] = record
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
