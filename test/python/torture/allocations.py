"""The memory that a wrapper's own buffers take, read in its source: what was emitted, and not what was planned."""

from __future__ import annotations

import re
from collections.abc import Iterator

import torch

_ALLOCATION = re.compile(r"(\w+) = empty_strided_\w+\(\(([^)]*)\), \(([^)]*)\), (torch\.\w+)\)")
_ALIAS = re.compile(r"(\w+) = (?:reinterpret_tensor\()?(\w+)\b")
_DELETION = re.compile(r"del (\w+)$")


def peak_bytes(code: str) -> int:
    """The most bytes of buffers that live at once; results of library calls are not counted, nor are inputs."""
    owner: dict[str, int] = {}
    sizes: list[int] = []
    live = most = 0
    for statement in _statements(code):
        if found := _ALLOCATION.match(statement):
            owner[found[1]] = len(sizes)
            sizes.append(_bytes(*found.groups()[1:]))
            live += sizes[-1]
            most = max(most, live)
        elif (found := _ALIAS.match(statement)) and found[2] in owner:
            owner[found[1]] = owner[found[2]]
        elif (found := _DELETION.match(statement)) and found[1] in owner:
            storage = owner.pop(found[1])
            live -= 0 if storage in owner.values() else sizes[storage]
    return most


def _statements(code: str) -> Iterator[str]:
    for line in code.splitlines():
        for statement in line.split("#", maxsplit=1)[0].split(";"):
            yield statement.strip()


def _bytes(shape: str, strides: str, dtype: str) -> int:
    sizes, steps = (list(map(int, re.findall(r"\d+", text))) for text in (shape, strides))
    if 0 in sizes:
        return 0
    elements = 1 + sum((size - 1) * step for size, step in zip(sizes, steps, strict=True))
    return elements * getattr(torch, dtype.removeprefix("torch.")).itemsize
