"""For `bridge bench --side-by-side`: cases are prepared by processes at the same time, and timed one at a time.

Compiling takes most of the time of a benchmark and needs no GPU; what is timed must have the GPU for itself.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.synchronize import Barrier, Lock
from typing import Any


@dataclass
class Turn:
    """Hold what a process waits for before it times anything: all others are prepared, and none of them is timing."""

    everybody: Barrier
    one_at_a_time: Lock
    tuning: Lock  # Held while a process has its kernels' configurations timed, before it is prepared.
    arrived: bool = field(default=False, init=False)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until no other process prepares or times; the others wait until the context is left."""
        self.arrive()
        with self.one_at_a_time:
            yield

    def arrive(self) -> None:
        """Say that this process is prepared, or will never be, and wait for the others; done once."""
        if self.arrived:
            return
        self.arrived = True
        # A process that died will not come: the rest goes on without it.
        with contextlib.suppress(threading.BrokenBarrierError):
            self.everybody.wait()


def side_by_side(function: Callable[[Any, Turn], Any], jobs: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """Call the function for all jobs at once, in a process each; yield (number of the job, result) as they come.

    function: importable by name; takes a job and its turn; job and result: can be pickled.  None where a process died.
    """
    context = multiprocessing.get_context("spawn")
    turn = Turn(context.Barrier(len(jobs)), context.Lock(), context.Lock())
    running = [_start(context, function, job, turn) for job in jobs]
    waiting = {connection: number for number, (_, connection) in enumerate(running)}
    while waiting:
        for connection in wait(list(waiting)):
            number = waiting.pop(connection)  # type: ignore[call-overload]
            try:
                result = running[number][1].recv()
            except EOFError:
                result = None
                turn.everybody.abort()
            yield number, result
    for process, _ in running:
        process.join()


def _start(
    context: SpawnContext, function: Callable[[Any, Turn], Any], job: Any, turn: Turn
) -> tuple[SpawnProcess, Connection]:
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_call, args=(function, job, turn, theirs))
    process.start()
    theirs.close()  # So that the end of the process is the end of the connection.
    return process, ours


def _call(function: Callable[[Any, Turn], Any], job: Any, turn: Turn, answer: Connection) -> None:
    try:
        answer.send(function(job, turn))
    finally:
        turn.arrive()
