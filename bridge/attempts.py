"""Steps that a bug of ours may end: in production the user's compilation goes on without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .groups import Refusal
from .options import Options
from .reasons import Reason
from .report import Report

#: What a bug of ours looks like at the group's boundary; production falls back, strict mode raises.
BUGS = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def try_step(step: Callable[[], Any], fallback: Any, options: Options, report: Report) -> Any:
    """What a step gives, which changes nothing before it is done; in production the fallback, where a bug ends it."""
    try:
        return step()
    except BUGS as bug:
        if options.strict:
            raise
        report.refusals.append(Refusal([], Reason.internal_error, f"{type(bug).__name__}: {bug}"))
        return fallback
