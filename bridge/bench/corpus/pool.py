"""For `bridge bench --corpus`: hand patterns to worker processes, and replace one that crashes or hangs."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence

from .journal import Record

#: Patterns before a process is replaced: compilers keep some memory of each.
PATTERNS_A_PROCESS = 150

#: Of the processes: one core each, and code generated anew, as only that makes a report.
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCHINDUCTOR_FX_GRAPH_CACHE": "0"}

_COMMAND = [sys.executable, "-m", f"{__package__}.worker"]


class Worker:
    """Hold one worker process, started where there is none; `arguments` are those of the module `worker`."""

    def __init__(self, arguments: Sequence[str], limit: float):
        self._arguments, self._limit = arguments, limit
        self._process: subprocess.Popen | None = None
        self._left = 0

    def ask(self, name: str) -> Record:
        """Return the record of a pattern; of a hang or a crash, where there is no other."""
        process = self._started()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(name + "\n")
        process.stdin.flush()
        timer = threading.Timer(self._limit, process.kill)
        timer.start()
        line = process.stdout.readline()
        hung = not timer.is_alive()
        timer.cancel()
        if line:
            record = json.loads(line)
            self._left = 0 if record.pop("broken", False) else self._left
            return record
        return {"pattern": name, **self._ended(hung)}

    def _started(self) -> subprocess.Popen:
        if self._process is None or self._left == 0:
            self.close()
            command = [*_COMMAND, *self._arguments]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_ENVIRONMENT | dict(os.environ)
            )
            self._left = PATTERNS_A_PROCESS
        self._left -= 1
        return self._process

    def _ended(self, hung: bool) -> Record:
        assert self._process is not None
        code, self._process = self._process.wait(), None
        if hung:
            return {"status": "hang", "detail": f"no result in {self._limit:g} s"}
        return {"status": "crash", "detail": f"the process ended with code {code}"}

    def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def run_all(
    names: Sequence[str], arguments: Sequence[str], workers: int, limit: float, more: Callable[[], bool]
) -> Iterator[Record]:
    """Yield the records of all patterns as they come, until `more` says that the time is over."""
    todo: queue.SimpleQueue[str] = queue.SimpleQueue()
    done: queue.SimpleQueue[Record | None] = queue.SimpleQueue()
    for name in names:
        todo.put(name)
    shared = todo, done, more
    threads = [threading.Thread(target=_work, args=(*shared, Worker(arguments, limit))) for _ in range(workers)]
    for thread in threads:
        thread.start()
    running = workers
    while running:
        record = done.get()
        if record is None:
            running -= 1
        else:
            yield record


def _work(todo: queue.SimpleQueue, done: queue.SimpleQueue, more: Callable[[], bool], worker: Worker) -> None:
    try:
        while more():
            done.put(worker.ask(todo.get_nowait()))
    except queue.Empty:
        return
    finally:
        worker.close()
        done.put(None)
