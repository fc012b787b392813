"""Test the architectures that `bridge bench` runs."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from bridge.bench.arguments import MODES
from bridge.bench.zoo import ZOO, Architecture, selected


class Scaled(nn.Module):
    """Stand for a model whose last layer is zeros."""

    def __init__(self, width: int, classes: int):
        super().__init__()
        self.norm, self.last = nn.LayerNorm(width), nn.Linear(width, classes)
        nn.init.zeros_(self.last.weight)


SCALED = Architecture("scaled", "image", "torch", Scaled, {"width": 8, "classes": 4}, {"classes": 2})


def test_names_are_unique_and_all_modes_are_known():
    assert len({architecture.name for architecture in ZOO}) == len(ZOO)
    assert {mode for architecture in ZOO for mode in architecture.modes} == set(MODES)


def test_the_kind_decides_the_modes():
    kinds = ("decoder", "recurrent", "encoder", "image")
    modes = {kind: Architecture("", kind, "torch", Scaled).modes for kind in kinds}
    assert modes == {
        "decoder": ("prefill", "decode", "training"), "recurrent": ("prefill",), "encoder": ("prefill", "training"),
        "image": ("vision", "training"),
    }  # fmt: skip


def test_architectures_are_selected_by_parts_of_their_names():
    assert [a.name for a in selected(["llama", "mixer"])] == ["llama3-8b", "mixer-b16"]
    assert selected([]) == ZOO and selected(["nothing"]) == []


def test_a_model_has_random_weights_where_it_would_have_ones_and_zeros():
    module = SCALED.build(torch.float64, "cpu", small=True)
    assert module.last.weight.shape == (2, 8) and module.last.weight.dtype == torch.float64
    assert module.last.weight.all() and module.norm.weight.unique().numel() == 8
    assert not module.training and not any(p.requires_grad for p in module.parameters())
    again = SCALED.build(torch.float64, "cpu", small=True)
    assert torch.equal(module.last.weight, again.last.weight)
    assert SCALED.outline(torch.bfloat16).last.weight.shape == (4, 8)


def test_a_failure_leaves_the_default_dtype():
    before = torch.get_default_dtype()
    with pytest.raises(TypeError, match="unknown"):
        Architecture("bad", "image", "torch", Scaled, {"unknown": 1}).build(torch.bfloat16, "cpu")
    assert torch.get_default_dtype() == before
    assert not Architecture("bad", "image", "no_such_library", Scaled).available and SCALED.available
