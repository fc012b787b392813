"""Test two ranks of tensor parallelism, each in a process of its own, with gloo between them."""

from __future__ import annotations

from small_models import generate, write_model


def test_both_ranks_have_bridge(cache, tmp_path):
    """The configuration takes it to each of them; they say what they say without."""
    model = write_model("Llama", tmp_path / "model")
    ranks = {"tensor_parallel_size": 2, "distributed_executor_backend": "mp"}
    expected = generate(model, **ranks)
    assert not list(cache.rglob("bridge/*/*.txt"))
    assert generate(model, **ranks, additional_config={"bridge": {}}) == expected
    assert {file.parent.name for file in cache.rglob("bridge/*/graph_1.txt")} == {"rank_0", "rank_1"}
