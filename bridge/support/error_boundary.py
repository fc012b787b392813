"""Steps that a refusal or a bug of ours may end: in production the user's compilation goes on without them.

A step is as small as it can be: one kernel, one group, one shared launch, one node of a graph.  It changes nothing
before it is done, or undoes what it has changed; so all other steps are as if it had been refused.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from ..reasons import Reason, Refusal, Unsupported

#: What a bug of ours looks like: any error, as torch, sympy, MLIR and the system have classes of their own for theirs.
#: What interrupts a program is none.
BUGS = (Exception,)

#: Operations for whose kernel no code could be generated, with the error: they are to be left as they are.
_faulty: ContextVar[dict[str, str]] = ContextVar("bridge_faulty", default={})  # noqa: B039, it is not changed

#: Takes why a step ended: the reason, and the detail.
Note = Callable[[Reason, str], None]

Result = TypeVar("Result")
Fallback = TypeVar("Fallback")


@dataclass(frozen=True)
class _Boundary:
    """strict: whether a bug is raised; refuse: takes what has ended, where nobody else asks for it."""

    strict: bool
    refuse: Callable[[Refusal], None]


#: None, outside of every `boundary`: nothing is held back.
_current: ContextVar[_Boundary | None] = ContextVar("bridge_boundary", default=None)


@contextlib.contextmanager
def boundary(strict: bool, refuse: Callable[[Refusal], None]) -> Iterator[None]:
    """Have the attempts of the block end in refusals; strict: a bug is raised all the same."""
    token = _current.set(_Boundary(strict, refuse))
    try:
        yield
    finally:
        _current.reset(token)


@contextlib.contextmanager
def attempt(*nodes: str, note: Note | None = None) -> Iterator[None]:
    """End the block, and nothing else, where a refusal or a bug of ours ends it.

    nodes: what the block is about; note: takes the reason, by default the boundary, as a refusal of the nodes.
    Raises the bug in strict mode.
    """
    current = _current.get()
    if current is None:
        yield
        return
    note = note or partial(_refuse, current, list(nodes))
    try:
        yield
    except Unsupported as refusal:
        note(refusal.reason, refusal.detail)
    except BUGS as bug:
        if current.strict:
            raise
        note(Reason.internal_error, describe(bug))


def try_step(step: Callable[[], Result], fallback: Fallback, *nodes: str) -> Result | Fallback:
    """Return what a step gives; in production the fallback, where a refusal or a bug ends it."""
    with attempt(*nodes):
        return step()
    return fallback


@contextlib.contextmanager
def without(operations: set[str], detail: str) -> Iterator[None]:
    """Have the block leave kernels of these operations alone; those of the blocks around it, too."""
    token = _faulty.set({**_faulty.get(), **dict.fromkeys(operations, detail)})
    try:
        yield
    finally:
        _faulty.reset(token)


def is_faulty(operations: set[str]) -> bool:
    """Return True if all of them are already left alone."""
    return operations <= _faulty.get().keys()


def check_not_faulty(operations: set[str]) -> None:
    """Raise Unsupported(internal_error) for operations that are to be left alone."""
    for name in sorted(operations & _faulty.get().keys()):
        raise Unsupported(Reason.internal_error, _faulty.get()[name])


def describe(bug: BaseException) -> str:
    """Return a bug's class and message, as one text."""
    return f"{type(bug).__name__}: {bug}"


def _refuse(current: _Boundary, nodes: list[str], reason: Reason, detail: str) -> None:
    current.refuse(Refusal(nodes, reason, detail))
