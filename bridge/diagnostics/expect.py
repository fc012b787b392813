"""For tests and CI: a region that is to become so many kernels, or an error that explains why it did not."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from ..support.fresh_code import fresh_entry
from .explaining import compiling, make_explanation
from .explanation import Explanation
from .recording import Recording


class FusionError(AssertionError):
    """Signal that a region took more kernels than it was to; `explanation` says why, and so does the message."""

    def __init__(self, message: str, explanation: Explanation):
        super().__init__(message)
        self.explanation = explanation


@contextlib.contextmanager
def expect_fused(
    n_kernels: int,
    *,
    backend_target: str = "cpu",
    force: bool = True,
    options: Mapping[str, Any] | None = None,
) -> Iterator[None]:
    """Raise FusionError where what the block, or the decorated function, compiles takes more than `n_kernels` kernels.

    All of this context's `torch.compile`s go through Bridge, for inference and, unless the option `training`
    is off, for training.  Counted are kernels of generated code, not calls of libraries.  backend_target: as for
    `bridge.explain`; for a GPU the code is generated, and the functions run in eager mode.  force: also fuse what is
    legal but judged not to pay.  options: of Bridge's own.

    FusionError, with the explanation, if there are more, and if nothing was compiled: what was compiled before the
    block needs no compilation.  A block that ends the process (sys.exit) is checked first.
    """
    if n_kernels < 0:
        raise ValueError(f"n_kernels must not be negative, got {n_kernels}")
    chosen = {"force_fusion": force, **(options or {})}
    leaving: list[SystemExit] = []
    with compiling(backend_target, chosen) as recording:
        try:
            yield
        except SystemExit as end:
            leaving.append(end)
    _check_region(recording, n_kernels, backend_target)
    if leaving:
        raise leaving[0]


def _check_region(recording: Recording, n_kernels: int, backend_target: str) -> None:
    """Raise FusionError if more kernels were recorded, or nothing was."""
    explanation = make_explanation(recording, "the region", backend_target)
    if not recording.graphs:
        raise FusionError(
            "nothing was compiled in the region: was it before, or is torch.compile missing?", explanation
        )
    if recording.kernels_after > n_kernels:
        message = f"{recording.kernels_after} kernels where at most {n_kernels} were expected"
        raise FusionError(f"{message}\n{explanation}\n\n{explanation.details()}", explanation)


def fuse_or_explain(
    function: Callable[..., Any] | None = None,
    *,
    n_kernels: int = 1,
    backend_target: str = "cpu",
    options: Mapping[str, Any] | None = None,
    **compile_arguments: Any,
) -> Callable[..., Any]:
    """Decorate a function: it is compiled with Bridge so that each graph of it becomes at most `n_kernels` kernels.

    What is legal but judged not to pay is fused, too.  Each call that compiles raises FusionError if there are more,
    and a call before which nothing was compiled does if it compiles nothing; other calls run the kernels.
    compile_arguments: of `torch.compile`, such as `dynamic`.
    """
    if function is None:
        return functools.partial(
            fuse_or_explain, n_kernels=n_kernels, backend_target=backend_target, options=options, **compile_arguments
        )
    chosen = {"force_fusion": True, **(options or {})}
    compiled = torch.compile(fresh_entry(function), **compile_arguments)

    graphs = 0

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal graphs
        with compiling(backend_target, chosen) as recording:
            result = compiled(*args, **kwargs)
        graphs += recording.graphs
        if not graphs:
            explanation = make_explanation(recording, function.__name__, backend_target)
            raise FusionError("nothing was compiled: is torch.compile switched off?", explanation)
        if recording.kernels_after > n_kernels * max(1, recording.graphs):
            explanation = make_explanation(recording, function.__name__, backend_target)
            message = f"more than {n_kernels} kernels a graph\n{explanation}\n\n{explanation.details()}"
            raise FusionError(message, explanation)
        return result

    return call
