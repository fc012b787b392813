"""Test the engine's core in a process of its own, as vLLM has it by default.

On a CPU the core starts a process for its worker: the configuration, and Bridge with it, is handed on twice.
"""

from __future__ import annotations

import os
import re

from small_models import generate, write_model

import bridge


def test_bridge_is_in_the_worker_of_an_engine_core(cache, tmp_path, monkeypatch, capfd):
    """It says what the engine says without; this process, which made the configuration, compiles nothing."""
    monkeypatch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "1")
    model = write_model("Llama", tmp_path / "model")
    expected = generate(model)
    assert not list(cache.rglob("bridge/*/*.txt"))
    capfd.readouterr()
    assert generate(model, additional_config={"bridge": {}}) == expected
    assert bridge.report() is None
    assert [file.parent.name for file in cache.rglob("bridge/*/graph_1.txt")] == ["rank_0"]
    (line,) = [line for line in capfd.readouterr().out.splitlines() if "Bridge: graph 1, layers.0, layers.1: " in line]
    assert int(re.match(r"\(.+ pid=(\d+)\)", line)[1]) != os.getpid()
