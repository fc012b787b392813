"""For `bridge bench --corpus`: records of patterns in a file, a line each, so that a stopped run can go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeAlias

#: What became of a pattern, as JSON: its name, its status and figures.
Record: TypeAlias = dict[str, Any]


class Journal:
    """Hold the records in a file that is only added to; the last one of a pattern counts."""

    def __init__(self, path: Path):
        self.path = path
        self.records: dict[str, Record] = {r["pattern"]: r for r in map(json.loads, complete_lines(path))}

    def add(self, record: Record) -> None:
        """Append a record to the file; an earlier one of the same pattern no longer counts."""
        self.records[record["pattern"]] = record
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def complete_lines(path: Path) -> list[str]:
    """Return the lines of a file, none of one that is not there; cut off a last line that a stopped run began."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    complete = text[: text.rfind("\n") + 1]
    if complete != text:
        path.write_text(complete, encoding="utf-8")
    return complete.splitlines()
