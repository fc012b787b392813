"""Functions that Dynamo has never seen."""

from __future__ import annotations

import itertools
import sys
import types
from collections.abc import Callable
from typing import Any

_counter = itertools.count()


def fresh_entry(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls ``fn`` and that Dynamo has never seen.

    Dynamo keeps compiled entries and recompile counts per code object, and its
    record of which sizes changed per code name. A new code object under a new
    name keeps one compilation from making the next one dynamic, or from
    reaching the recompile limit.
    """

    def entry(*args: object, **kwargs: object) -> Any:
        return fn(*args, **kwargs)

    name = f"bridge_entry_{next(_counter)}"
    code = entry.__code__.replace(co_name=name)
    if sys.version_info >= (3, 11):
        code = code.replace(co_qualname=name)
    # Globals of its own, too: Dynamo leaves there what modules are called, and `__main__` may be another one next.
    return types.FunctionType(code, dict(globals()), name, None, entry.__closure__)
