"""Hold the data of an explanation, which `bridge.explain` gives."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .counts import Counts
from .first_screen import Screen, as_html
from .recording import Buffer, Kernel, Statement
from .roofline import Roofline


@dataclass(frozen=True)
class ExampleAccess:
    """Hold one side of a counterexample, in the user's terms: which node does what, and the line it came from."""

    node: str
    words: str
    source: str


@dataclass(frozen=True)
class ExplainedRefusal:
    """Hold why two loops stayed apart; node / source: the later one's; accesses: of a dependence, an example."""

    reason: str
    text: str
    node: str
    source: str
    accesses: tuple[ExampleAccess, ...] = ()


@dataclass(frozen=True)
class Transformation:
    """Hold a pass that changed the group's loops, and what they are after it."""

    name: str
    meaning: str
    counts: Counts


@dataclass(frozen=True)
class Resources:
    """Hold a kernel compiled for the target with the first configuration of Inductor's heuristic."""

    kernel: str
    registers: int
    spills: int
    shared_bytes: int
    config: dict[str, int]


@dataclass
class GroupExplanation:
    """Hold a group of kernels that Inductor left apart; times are seconds, and bytes those at typical sizes.

    buffers: those that one statement writes and another reads; stages: the IR after each step, by name;
    sizes: typical values of symbolic sizes.
    """

    name: str
    fused: bool
    done: str
    kernels_before: int
    kernels_after: int
    reason: str | None
    detail: str
    statements: list[Statement]
    buffers: dict[str, Buffer]
    transformations: list[Transformation]
    refusals: list[ExplainedRefusal]
    decisions: list[str]
    guards: list[str]
    bytes_before: int
    bytes_after: int
    bytes_if_one: int
    seconds_before: float
    seconds_after: float
    kernels: list[Kernel]
    resources: list[Resources] = field(default_factory=list)
    certificate: list[str] = field(default_factory=list)
    stages: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)


@dataclass
class Explanation:
    """Hold what `bridge.explain` gives: print it, or see `details`, `to_dict`, `to_json` and `save_html`.

    kernels_before / kernels_after: of generated code in all graphs; groups: those that gain most first;
    others: kernels that could not take part; screen: what is said first; faults: (reason, detail) of what is missing or
    broken, so that the code is Inductor's where it should not be.
    """

    name: str
    target: str
    roofline: Roofline
    graphs: int
    kernels_before: int
    kernels_after: int
    groups: list[GroupExplanation]
    others: list[ExplainedRefusal]
    choices: list[str]
    screen: Screen = field(default_factory=Screen)
    faults: list[tuple[str, str]] = field(default_factory=list)

    def __str__(self) -> str:
        """Return the first screen; `details` has the rest."""
        return str(self.screen) if self.graphs else f"{self.name}: nothing was compiled"

    def __repr__(self) -> str:
        """Return one line for a prompt: `print` shows the rest."""
        kernels = f"{self.kernels_before} -> {self.kernels_after} kernels"
        return f"<bridge.Explanation of {self.name} for {self.target}: {kernels}; print() shows more, .details() all>"

    def _repr_html_(self) -> str:
        """Return the first screen for a notebook."""
        return as_html(self.screen)

    def details(self) -> str:
        """Return a paragraph for each group: statements, passes, remarks, figures."""
        from .text import as_text

        return as_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as dictionaries, lists, strings and numbers."""
        return dataclasses.asdict(self)

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=1)

    def save_html(self, path: str | Path) -> Path:
        """Write the report as one self-contained file, and return its path."""
        from .html_report import render

        Path(path).write_text(render(self), encoding="utf-8")
        return Path(path)
