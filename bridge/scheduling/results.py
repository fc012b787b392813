"""Results of the stages of one group."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from ..inductor.protocols import Kernel
from ..reports import Counterexample


@dataclass(frozen=True)
class Transformed:
    """Hold what the passes said of a group, and what isl proved of what they made.

    remarks: (reason, text, location); counterexamples: of the remarks that are dependences;
    rows_of_segments: a band reduces over a row what segments of the row, or its lanes, have reduced.
    """

    remarks: tuple[tuple[str, str, str], ...] = ()
    counterexamples: tuple[Counterexample, ...] = ()
    certificate: tuple[str, ...] = ()
    rows_of_segments: bool = False


@dataclass(frozen=True)
class Fused:
    """Hold a band that became one kernel.

    positions: of the kernels in whose place it is; undo: gives their nodes their old loops.
    """

    kernel: Kernel
    positions: frozenset[int]
    decisions: tuple[str, ...]
    undo: contextlib.ExitStack
