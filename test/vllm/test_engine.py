"""vLLM's whole engine, with small models of random weights: with Bridge it says what it says without."""

from __future__ import annotations

import gc
import logging

import pytest
from small_models import MODELS, write_model

import bridge
from bridge import reports

#: Longer than a block of the cache on a CPU, so that a second request finds a prefix there.
LONG = [3 + 7 * i % 120 for i in range(200)]


def generate(model: str, **options) -> tuple[list[list[int]], int]:
    """Return what the model says after three prompts, greedily, and how many tokens came from the prefix cache."""
    from vllm import LLM, SamplingParams

    small = {"load_format": "dummy", "skip_tokenizer_init": True, "max_model_len": 256, "max_num_seqs": 4, "seed": 0}
    llm = LLM(model=model, **small, **options)
    greedy = SamplingParams(temperature=0, max_tokens=8, ignore_eos=True, detokenize=False)
    said, cached = [], 0
    for prompts in ([LONG, [7, 8, 9]], [LONG]):
        outputs = llm.generate([{"prompt_token_ids": ids} for ids in prompts], greedy, use_tqdm=False)
        said += [list(output.outputs[0].token_ids) for output in outputs]
        cached += sum(output.num_cached_tokens or 0 for output in outputs)
    del llm
    gc.collect()
    return said, cached


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
    assert list((cache / "bridge").iterdir())
