"""Test patterns of a corpus, compiled without a GPU."""

from __future__ import annotations

from unittest import mock

from bridge.bench.corpus.compiled import compile_offline


def test_a_pattern_is_compiled_with_and_without_bridge(corpus):
    record = compile_offline(corpus, "norm_1")
    assert (record["status"], record["inductor"], record["bridge"], record["claimed"]) == ("fused", 2, 1, [2, 1])
    assert not record["same_code"]


def test_a_pattern_that_inductor_cannot_compile_is_skipped(corpus):
    record = compile_offline(corpus, "bad_2")
    assert record["status"] == "skipped" and "unknown" in record["detail"]


def test_a_failure_of_bridge_alone_is_a_crash(corpus):
    with mock.patch("bridge.scheduling.hook.run_after_fusion", side_effect=RuntimeError("a bug")):
        record = compile_offline(corpus, "norm_1")
    assert record["status"] == "crash" and "a bug" in record["detail"]
