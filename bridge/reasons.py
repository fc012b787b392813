"""Why a fusion did not happen: one enum for C++ remarks and Python, and the exception that carries it."""

from __future__ import annotations

from dataclasses import dataclass

from ._native._reasons_gen import Reason

__all__ = ["InvariantError", "Reason", "Refusal", "Unsupported"]


@dataclass
class Refusal:
    """A kernel or a group that Bridge leaves alone, and why."""

    nodes: list[str]
    reason: Reason
    detail: str


class Unsupported(Exception):
    """A named refusal: the nodes stay exactly as Inductor had them, and the reason is counted."""

    def __init__(self, reason: Reason, detail: str):
        super().__init__(f"[{reason.name}] {detail}")
        self.reason = reason
        self.detail = detail


class InvariantError(AssertionError):
    """Something that this package guarantees does not hold: a bug here, raised in strict mode."""
