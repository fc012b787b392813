"""Bridge for every compilation by Inductor, without `backend="bridge"`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .options import make_options
from .reports import Report


def install(**options: Any) -> None:
    """Has every compilation by Inductor in this process, in any thread, go through Bridge.

    That is `torch.compile`, `compile_fx` and AOTInductor.  What is compiled already stays as it is.  Calling it
    again changes the options.  OptionError for a bad option; with a torch that Bridge does not know, nothing is
    installed and a warning says so.
    """
    chosen = make_options(options)
    from .scheduling import hook

    if hook.supported(Report()):
        hook.install(chosen)


def uninstall() -> None:
    """Undoes `install`; does nothing without one."""
    from .scheduling import hook

    hook.uninstall()


@contextlib.contextmanager
def enabled(**options: Any) -> Iterator[Report]:
    """As `install`, for what this thread compiles inside the block (or the decorated function).

    Gives the report of all of it.  Blocks nest; the innermost's options count.  A backward that is compiled
    after the block is plain Inductor's.
    """
    chosen = make_options(options)
    from .scheduling import hook

    report = Report()
    if not hook.supported(report):
        yield report
        return
    with hook.active(chosen, report):
        yield report
