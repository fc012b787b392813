"""Runs cases in processes of their own, with a time limit for each; a crash or a hang ends one case."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import TimeoutError as Timeout
from multiprocessing.context import BaseContext

from pebble import ProcessExpired, ProcessPool

from .generator import load
from .outcome import Outcome, Verdict


def _run(generator: str, name: str, target: str) -> Outcome:
    return load(generator).run(name, target)


def _context(preload: Sequence[str]) -> BaseContext:
    """How processes start: as new ones, or as copies of one that has imported what all cases of a generator need."""
    if not preload:
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*preload])
    return context


def run_all(generator: str, names: Sequence[str], target: str, workers: int) -> Iterator[Outcome]:
    """Yield the outcomes in the order of the names."""
    module = load(generator)
    context = _context(getattr(module, "PRELOAD", ()))
    with ProcessPool(max_workers=workers, max_tasks=module.CASES_A_PROCESS, context=context) as pool:
        futures = [pool.schedule(_run, (generator, name, target), timeout=module.TIME_LIMIT) for name in names]
        try:
            for name, future in zip(names, futures, strict=True):
                yield _outcome(name, future, module.TIME_LIMIT)
        finally:
            for future in futures:
                future.cancel()


def _outcome(name, future, limit: float) -> Outcome:
    try:
        return future.result()
    except Timeout:
        return Outcome(name, Verdict.hang, f"no result in {limit:g} s", seconds=limit)
    except ProcessExpired as expired:
        return Outcome(name, Verdict.crash, f"the process ended with code {expired.exitcode}")
