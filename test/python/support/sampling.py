"""Choose which tests are run where not all are: of a function's parameters some, by name and by turn.

The turn is a hash of a date: each draws others, over many days all are run, and one turn always runs the same ones.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

#: What of a turn says which parameters are run. By the rest of it, a parameter does not depend on its function's turn.
_FUNCTIONS = 16**3


@dataclass(frozen=True)
class Sample:
    """Choose one in `thin` parameters, and at least one of each function whose turn it is.

    Below the paths `few` it is the turn of one function in `few_of`. A long list of parameters has a turn in two at the
    least. Where nothing is thinned it is the turn of every function.
    """

    turn: int = 0
    thin: int = 1
    few: tuple[Path, ...] = ()
    few_of: int = 4

    def of(self, items: Iterable[pytest.Item]) -> set[pytest.Item]:
        """Return the tests to run."""
        functions: dict[str, list[pytest.Item]] = {}
        for item in items:
            if item.get_closest_marker("slow") is None and self._is_functions_turn(item):
                functions.setdefault(_function(item), []).append(item)
        return {item for parameters in functions.values() for item in self._parameters(parameters)}

    def _is_functions_turn(self, item: pytest.Item) -> bool:
        if self.thin == 1:
            return True
        few = any(item.path.is_relative_to(path) for path in self.few)
        names = [(node.nodeid.partition("[")[0], mark.args[0]) for node, mark in item.iter_markers_with_node("in_turn")]
        names += [(_function(item), self.few_of)] if few else []
        return all(_is_turn(name, self.turn // _FUNCTIONS, of) for name, of in names)

    def _parameters(self, items: list[pytest.Item]) -> list[pytest.Item]:
        """Return those whose turn it is, or else one; of a long list, which is `one_in`, one or none."""
        chosen = [item for item in items if _is_turn(item.name, self.turn, self._one_in(item))]
        if chosen or (self.thin > 1 and self._is_left_out(items[0])):
            return chosen
        return [items[self.turn % len(items)]]

    def _is_left_out(self, item: pytest.Item) -> bool:
        is_of_many = item.get_closest_marker("one_in") is not None
        return is_of_many and not _is_turn(_function(item), self.turn // _FUNCTIONS, 2)

    def _one_in(self, item: pytest.Item) -> int:
        marker = item.get_closest_marker("one_in")
        return (marker.args[0] if marker else 1) * (self.thin if "[" in item.name else 1)


def _is_turn(name: str, turn: int, of: int) -> bool:
    return (zlib.crc32(name.encode()) - turn) % of == 0


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]
