"""Bridge for every compilation by Inductor, without `backend="bridge"`."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from .options import make_options
from .reports import Report


def install(**options: Any) -> None:
    """Have every compilation by Inductor in this process, in any thread, go through Bridge.

    That is `torch.compile`, `compile_fx` and AOTInductor.  What is compiled already stays as it is.  Calling it
    again changes the options.  OptionError for a bad option; with a torch that Bridge does not know, nothing is
    installed and a warning says so.
    """
    chosen = make_options(options)
    from .scheduling import hook

    if hook.supported(Report()):
        hook.install(chosen)


def uninstall() -> None:
    """Undo `install`; do nothing without one."""
    from .scheduling import hook

    hook.uninstall()


_Function = TypeVar("_Function", bound=Callable[..., Any])


class enabled(contextlib.ContextDecorator):
    """Do as `install` does, for what this thread compiles inside the block (or the decorated function).

    `with bridge.enabled() as report:` gives the report of all of it.  Without `with` nothing is turned on, and a
    warning says so.  Blocks nest; the innermost's options count.  A backward that is compiled after the block is plain
    Inductor's.  OptionError for a bad option.
    """

    #: For `__del__`, of an object that a bad option has kept from being made.
    _used = True

    def __init__(self, **options: Any):
        """Take the options; what `bridge.config` and the environment say is read when the block begins."""
        make_options(options)
        self._options = options
        self._blocks: list[contextlib.ExitStack] = []
        self._used = False

    def __enter__(self) -> Report:
        """Begin the block, and return its report."""
        self._used = True
        from .scheduling import hook

        report, chosen = Report(), make_options(self._options)
        with contextlib.ExitStack() as stack:
            if hook.supported(report):
                stack.enter_context(hook.active(chosen, report))
            self._blocks.append(stack.pop_all())
        return report

    def __exit__(self, *error: object) -> None:
        """End the block that was begun last."""
        self._blocks.pop().close()

    def __call__(self, function: _Function) -> _Function:
        """Return a function whose calls are blocks."""
        self._used = True
        return super().__call__(function)

    def _recreate_cm(self) -> enabled:
        """Return what a call of a decorated function enters: calls may run in several threads at once."""
        return type(self)(**self._options)

    def __repr__(self) -> str:
        """Return what to write, for a prompt: the call alone turns nothing on."""
        return "<bridge.enabled: on inside of `with bridge.enabled():` only>"

    def __del__(self) -> None:
        """Warn where the call stood alone."""
        if not self._used and not sys.is_finalizing():
            words = "bridge.enabled() turns nothing on without `with`; for the whole process call bridge.install()"
            warnings.warn(words, RuntimeWarning, stacklevel=2)
