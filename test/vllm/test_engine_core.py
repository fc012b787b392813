"""The engine's core in a process of its own, as vLLM has it by default: the configuration takes Bridge there."""

from __future__ import annotations

from small_models import generate, write_model

import bridge


def test_bridge_is_in_the_engine_core(cache, tmp_path, monkeypatch, capfd):
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
    assert line.startswith("(EngineCore")
