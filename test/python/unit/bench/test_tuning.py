from __future__ import annotations

import threading
from unittest import mock

from torch._inductor.runtime.triton_heuristics import CachingAutotuner

from bridge.bench.tuning import tuning_within


def test_configurations_are_timed_while_the_lock_is_held_and_not_after() -> None:
    lock, kernel = threading.Lock(), object.__new__(CachingAutotuner)
    with mock.patch.object(CachingAutotuner, "benchmark_all_configs", lambda self, *args: (lock.locked(), *args)):
        with tuning_within(lock):
            assert kernel.benchmark_all_configs(3) == (True, 3)
        assert kernel.benchmark_all_configs(4) == (False, 4)
