"""For `bridge bench --side-by-side`: the configurations of kernels are timed by one process at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock


@contextlib.contextmanager
def tuning_within(lock: contextlib.AbstractContextManager[object]) -> Iterator[None]:
    """Hold a lock whenever a kernel's configurations are timed: what another process tunes would change the times."""
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner  # weight: Inductor

    of_torch = CachingAutotuner.benchmark_all_configs

    def alone(self: CachingAutotuner, *args: Any, **kwargs: Any) -> Any:
        with lock:
            return of_torch(self, *args, **kwargs)

    with mock.patch.object(CachingAutotuner, "benchmark_all_configs", alone):
        yield
