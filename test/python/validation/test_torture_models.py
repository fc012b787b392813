"""The generator of models: what it makes small, what it counts, and how it judges."""

from __future__ import annotations

import math

import pytest
import torch
from torture.model_configs import Shrink
from torture.model_errors import error_ratio, relative_error
from torture.outcome import Verdict


def test_widths_stay_multiples_of_heads():
    small = Shrink().values({"hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128})
    assert small["hidden_size"] == small["num_attention_heads"] * small["head_dim"]
    assert small["num_attention_heads"] % small["num_key_value_heads"] == 0


def test_every_kind_of_layer_is_kept():
    kinds = ["sliding_attention"] * 5 + ["full_attention"]
    given = {"num_hidden_layers": 12, "layer_types": kinds * 2, "no_rope_layers": [1, 1, 1, 0] * 3}
    small = Shrink().values(given)
    assert set(small["layer_types"]) == set(kinds)
    assert small["num_hidden_layers"] == len(small["layer_types"]) == len(small["no_rope_layers"])


def test_tokens_stay_different_from_each_other():
    small = Shrink().values({"image_token_id": 128256, "text": {"eos_token_id": 128001, "image_token_id": 128256}})
    assert small["image_token_id"] == small["text"]["image_token_id"] != small["text"]["eos_token_id"]


def test_one_wrong_element_of_many_is_a_large_error():
    expected = torch.ones(1000, dtype=torch.float64)
    given = expected.clone()
    given[7] = -1
    assert relative_error([given], [expected]) > 0.05
    given[7] = math.nan
    assert relative_error([given], [expected]) == math.inf


def test_ratio_is_the_geometric_mean():
    assert error_ratio([1e-3, 4e-3], [1e-3, 1e-3]) == pytest.approx(2)
    assert error_ratio([0.0, math.inf], [0.0, math.inf]) == 1
    assert error_ratio([math.inf], [1e-3]) > 1e6


@pytest.mark.slow
def test_a_model_is_compiled_for_both_directions(compiler):
    pytest.importorskip("transformers")
    from torture import models

    outcome = models.run("transformers/llama training", "triton")
    assert outcome.verdict is Verdict.fused, outcome.detail
    assert outcome.figures["graphs"] == 2
    assert outcome.figures["kernels_after"] < outcome.figures["kernels_before"]
