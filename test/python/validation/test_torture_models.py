"""Test the generator of models: what it makes small, what it counts, and how it judges."""

from __future__ import annotations

import math
import types

import pytest
import torch
from torture import model_compiles, models
from torture.journal import Journal
from torture.model_configs import Shrink
from torture.model_errors import error_ratio, relative_error
from torture.model_inputs import find_inputs
from torture.model_table import COLUMNS, rows
from torture.outcome import Outcome, Verdict


def test_widths_stay_multiples_of_heads():
    small = Shrink().values({"hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128})
    assert small["hidden_size"] == small["num_attention_heads"] * small["head_dim"]
    assert small["num_attention_heads"] % small["num_key_value_heads"] == 0


def test_latent_attention_keeps_a_key_for_every_head():
    given = {"num_attention_heads": 32, "num_key_value_heads": 32, "kv_lora_rank": 512}
    widths = {"head_dim": 192, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64}
    small = Shrink().values(given | widths)
    assert small["num_key_value_heads"] == small["num_attention_heads"]
    assert small["head_dim"] == small["qk_nope_head_dim"] + small["qk_rope_head_dim"]
    assert Shrink().values({**given, "kv_lora_rank": None})["num_key_value_heads"] == 2


def test_every_kind_of_layer_is_kept():
    kinds = ["sliding_attention"] * 5 + ["full_attention"]
    given = {"num_hidden_layers": 12, "layer_types": kinds * 2, "no_rope_layers": [1, 1, 1, 0] * 3}
    small = Shrink().values(given)
    assert set(small["layer_types"]) == set(kinds)
    assert small["num_hidden_layers"] == len(small["layer_types"]) == len(small["no_rope_layers"])


def test_tokens_stay_different_from_each_other():
    small = Shrink().values({"image_token_id": 128256, "text": {"eos_token_id": 128001, "image_token_id": 128256}})
    assert small["image_token_id"] == small["text"]["image_token_id"] != small["text"]["eos_token_id"]


class Norm(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.layer_norm(x, x.shape[-1:])


def test_kernels_whose_code_comes_apart_count_as_loop_nests():
    """Check that kernels whose code comes apart count as loop nests.

    Inductor has one kernel for the norm's 4 steps, and finds out as it writes it that they share no loop.
    """
    model = model_compiles.Model(Norm(), {"x": torch.randn(40, 96)}, training=False)
    with model_compiles.compiled_to_run(model, model_compiles.backend_of("inductor", False), "cpu") as (compiled, made):
        compiled(*model.inputs.values())
    assert made.kernels == 4


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


class _Mono(torch.nn.Module):
    config = types.SimpleNamespace()
    main_input_name = "input_values"

    def forward(self, input_values):
        if input_values.dim() != 3 or input_values.shape[1] != 1:
            raise ValueError("not mono")
        return input_values


def test_a_model_of_sound_with_a_dimension_for_channels_gets_an_input():
    assert list(find_inputs(_Mono())) == ["input_values"]


def test_an_error_of_a_backend_is_told_by_its_own_words():
    error = RuntimeError("backend='backend' raised:\nValueError: no such stride\n\nWhile executing %add")
    assert models._line(error) == "backend='backend' raised: ValueError: no such stride"
    assert models._line(ValueError("a\nb")) == "a"


def test_a_table_of_models_stands_for_the_journals_it_was_made_of(tmp_path):
    old = [Outcome("timm/a inference", Verdict.worse), Outcome("timm/b inference", Verdict.fused)]
    new = [
        Outcome("timm/a inference", Verdict.fused, figures={"peak_after": 64}),
        Outcome("timm/a training", Verdict.same),
    ]
    for name, outcomes in (("old", old), ("new", new)):
        for outcome in outcomes:
            Journal(tmp_path / name / "models-triton.jsonl").add(outcome)
    table = tmp_path / "table.tsv"
    lines = ["\t".join(row) for row in (COLUMNS, *rows([tmp_path / "old" / "models-triton.jsonl"]))]
    table.write_text("\n".join(lines) + "\n")
    found = rows([table, tmp_path / "new" / "models-triton.jsonl"])
    verdicts = [(row[0], row[1], row[3]) for row in found]
    assert verdicts == [
        ("timm/a", "inference", "fused"),
        ("timm/a", "training", "same"),
        ("timm/b", "inference", "fused"),
    ]
    assert found[0][COLUMNS.index("peak_after")] == "64"


@pytest.mark.slow
def test_a_model_is_compiled_for_both_directions(compiler):
    pytest.importorskip("transformers")
    outcome = models.run("transformers/llama training", "triton")
    assert outcome.verdict is Verdict.fused, outcome.detail
    assert outcome.figures["graphs"] == 2
    assert outcome.figures["kernels_after"] < outcome.figures["kernels_before"]
