"""Test vLLM's whole engine, with small models of random weights: with Bridge it says what it says without."""

from __future__ import annotations

import pytest
from small_models import MODELS, WITHOUT_PREFIXES, generate, write_model

import bridge
from bridge import reports


@pytest.mark.parametrize("name", MODELS)
def test_generates_the_same_tokens(name, cache, tmp_path, monkeypatch, lines):
    """Without Bridge first: what is then in vLLM's cache is not taken for Bridge's."""
    monkeypatch.setattr(reports, "_last", None)
    model = write_model(name, tmp_path / "model")
    expected, cached = generate(model)
    assert cached >= 128 or name in WITHOUT_PREFIXES, "the prefix of the third request is in the cache"
    assert bridge.report() is None, "nobody has asked for Bridge"
    assert lines() == []
    assert generate(model, additional_config={"bridge": {}}) == (expected, cached)
    assert bridge.report().graphs >= 1
    (line,) = lines()
    assert "layers.0, layers.1: " in line
    assert list(cache.rglob("bridge/rank_0/graph_*.txt"))
