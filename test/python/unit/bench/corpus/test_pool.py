"""Test processes that compile patterns."""

from __future__ import annotations

import sys
from unittest import mock

from bridge.bench.corpus import pool


def test_a_process_that_ends_or_hangs_is_a_result(tmp_path):
    script = tmp_path / "worker.py"
    script.write_text("import sys, time\nname = sys.stdin.readline()\ntime.sleep(60 * ('slow' in name))\nsys.exit(7)\n")
    with mock.patch.object(pool, "_COMMAND", [sys.executable, str(script)]):
        worker = pool.Worker([], limit=2.0)
        assert worker.ask("quick") == {"pattern": "quick", "status": "crash", "detail": "the process ended with code 7"}
        assert worker.ask("slow") == {"pattern": "slow", "status": "hang", "detail": "no result in 2 s"}
