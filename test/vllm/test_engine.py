"""vLLM's whole engine, with small models of random weights: with Bridge it says what it says without."""

from __future__ import annotations

import logging

import pytest
import vllm.logger  # noqa: F401, it sets the logger up, and its `propagate`
from small_models import MODELS, generate, write_model

import bridge
from bridge import reports


@pytest.mark.parametrize("name", MODELS)
def test_generates_the_same_tokens(name, cache, tmp_path, monkeypatch, caplog):
    """Without Bridge first: what is then in vLLM's cache is not taken for Bridge's."""
    monkeypatch.setattr(reports, "_last", None)
    monkeypatch.setattr(logging.getLogger("vllm"), "propagate", True)
    model = write_model(name, tmp_path / "model")
    expected, cached = generate(model)
    assert cached >= 128, "the prefix of the third request is in the cache"
    assert bridge.report() is None, "nobody has asked for Bridge"
    with caplog.at_level(logging.INFO, logger="vllm.bridge"):
        assert generate(model, additional_config={"bridge": {}}) == (expected, cached)
    assert bridge.report().graphs >= 1
    (line,) = [message for message in caplog.messages if message.startswith("Bridge: graph ")]
    assert "layers.0, layers.1: " in line
    assert list(cache.rglob("bridge/rank_0/graph_*.txt"))
