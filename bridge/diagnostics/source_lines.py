"""Places in IR, in the user's terms: the line of code that they came from."""

from __future__ import annotations

import linecache
import re

_LOCATION = re.compile(r'loc\("([^"]*)"(?:\("([^"]*)":(\d+)(?::\d+)?\))?')


def source_line(file: str, line: int) -> str:
    """Return a place as `file.py:12  the code`."""
    from ..inductor.graphs import short_place  # weight: torch

    code = linecache.getline(file, line).strip()
    return f"{short_place(file, line)}  {code}".rstrip()


def find_place(location: str, lines: dict[str, list[tuple[str, int]]]) -> tuple[str, str]:
    """Return (node, source line) of a location as MLIR prints it."""
    found = _LOCATION.search(location)
    if found is None:
        return "", location
    node, file, line = found.groups()
    if file is not None:
        return node, source_line(file, int(line))
    return node, next((source_line(*where) for where in lines.get(node, [])), "")
