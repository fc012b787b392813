"""Run cases in processes of their own, with a time limit for each; a crash or a hang ends one case."""

from __future__ import annotations

import collections
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import TimeoutError as Timeout
from multiprocessing.context import BaseContext

from pebble import ProcessExpired, ProcessFuture, ProcessPool

from .generator import DEVICE_LOST, load
from .outcome import Outcome, Verdict

#: Cases that wait for each worker: the results come in the order of the names, and one may take long.
_AHEAD = 16

Task = tuple[str, ProcessFuture]


def _prepare(generator: str, target: str) -> None:
    """Do once what takes long, before a case's time is counted."""
    prepare = getattr(load(generator), "prepare", None)
    if prepare is not None:
        prepare(target)


def _run(generator: str, name: str, target: str) -> Outcome:
    return load(generator).run(name, target)


def _context(preload: Sequence[str]) -> BaseContext:
    """Return how processes start: as new ones, or as copies of one that has imported what all cases need."""
    if not preload:
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*preload])
    return context


def run_all(generator: str, names: Sequence[str], target: str, workers: int) -> Iterator[Outcome]:
    """Yield the outcomes in the order of the names."""
    module = load(generator)
    context = _context(getattr(module, "PRELOAD", ()))
    waiting: collections.deque[Task] = collections.deque()
    pool = ProcessPool(workers, module.CASES_A_PROCESS, _prepare, (generator, target), context)
    tasks = ((name, pool.schedule(_run, (generator, name, target), timeout=module.TIME_LIMIT)) for name in names)
    try:
        for name, future in _ahead(tasks, waiting, _AHEAD * workers):
            yield _outcome(name, future, module.TIME_LIMIT)
    finally:
        # Nothing is waited for: after a process that died, a closed pool may wait for a task that nobody has.
        pool.stop()
        pool.join()


def _ahead(tasks: Iterator[Task], waiting: collections.deque[Task], most: int) -> Iterator[Task]:
    """Start tasks until so many wait; yield them in their order."""
    for task in tasks:
        waiting.append(task)
        if len(waiting) > most:
            yield waiting.popleft()
    while waiting:
        yield waiting.popleft()


def _outcome(name: str, future: ProcessFuture, limit: float) -> Outcome:
    try:
        return future.result()
    except Timeout:
        return Outcome(name, Verdict.hang, f"no result in {limit:g} s", seconds=limit)
    except ProcessExpired as expired:
        if expired.exitcode == DEVICE_LOST:
            return Outcome(name, Verdict.skipped, "eager: a kernel broke the device")
        return Outcome(name, Verdict.crash, f"the process ended with code {expired.exitcode}")
