"""Which tests are run where not all are: of a function's parameters some, by their names and by whose turn it is.

The turn is a commit's: from one to the next all parameters are run, and what failed is run again with the same turn.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Sample:
    """One in `thin` parameters, of each function at least one; of functions below the paths `halved` one in two."""

    turn: int = 0
    thin: int = 1
    halved: tuple[Path, ...] = ()

    def of(self, items: Iterable[pytest.Item]) -> set[pytest.Item]:
        """Return the tests to run."""
        functions: dict[str, list[pytest.Item]] = {}
        for item in items:
            if item.get_closest_marker("slow") is None and self._is_functions_turn(item):
                functions.setdefault(_function(item), []).append(item)
        return {item for parameters in functions.values() for item in self._parameters(parameters)}

    def _is_functions_turn(self, item: pytest.Item) -> bool:
        halved = self.thin > 1 and any(item.path.is_relative_to(path) for path in self.halved)
        return not halved or self._is_turn(_function(item), 2)

    def _parameters(self, items: list[pytest.Item]) -> list[pytest.Item]:
        """Return those whose turn it is, or else one."""
        chosen = [item for item in items if self._is_turn(item.name, self._one_in(item))]
        return chosen or [items[self.turn % len(items)]]

    def _one_in(self, item: pytest.Item) -> int:
        marker = item.get_closest_marker("one_in")
        return (marker.args[0] if marker else 1) * (self.thin if "[" in item.name else 1)

    def _is_turn(self, name: str, of: int) -> bool:
        return (_hash(name) - self.turn) % of == 0


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _hash(name: str) -> int:
    return zlib.crc32(name.encode())
