"""Test the architectures that `bridge bench` is asked for."""

from __future__ import annotations

import argparse

import pytest
import torch

from bridge.bench import zoo
from bridge.bench.cases import SMALL, make_case
from bridge.bench.named import asked_for, named


def options(architectures: list[str], only: list[str]) -> argparse.Namespace:
    return argparse.Namespace(architectures=architectures, only=only)


def test_names_stand_for_architectures_of_the_zoo_and_of_libraries():
    assert named("dit-xl") is zoo.VISION[-1]
    assert (named("timm/resnet10t").kind, named("timm/resnet10t").library) == ("image", "timm")
    names = ("GPT2:LMHeadModel", "Bert:Model", "Dinov2:ForImageClassification")
    assert [named(f"transformers/{name}").kind for name in names] == ["decoder", "encoder", "image"]


@pytest.mark.parametrize("name", ["nothing", "timm/", "transformers/GPT2", "elsewhere/model"])
def test_a_name_that_stands_for_nothing_is_refused(name):
    with pytest.raises(ValueError, match="neither of the zoo"):
        named(name)


def test_names_take_the_place_of_the_zoo():
    assert [a.name for a in asked_for(options(["timm/resnet10t", "dit-xl"], ["llama"]))] == ["timm/resnet10t", "dit-xl"]
    assert [a.name for a in asked_for(options([], ["dit"]))] == ["dit-xl"]


@pytest.mark.in_turn(2)
def test_a_model_of_transformers_has_two_layers_of_its_default_configuration():
    pytest.importorskip("transformers")
    module = named("transformers/Bert:Model").outline(torch.bfloat16)
    assert len(module.encoder.layer) == module.config.num_hidden_layers == 2
    assert module.config.hidden_size == 768


@pytest.mark.parametrize("stem", ["Dinov2", "PvtV2", "Siglip"])
def test_images_of_transformers_have_the_size_of_the_configuration(stem):
    """Check that images have the configuration's size, which is one number, two, or one of its image part."""
    pytest.importorskip("transformers")
    architecture = named(f"transformers/{stem}:ForImageClassification")
    case = make_case(architecture, architecture.outline(torch.bfloat16), "vision", sizes=SMALL)
    assert case.inputs[0].shape == (2, 3, 224, 224)


def test_images_have_the_size_that_the_model_is_made_for():
    pytest.importorskip("timm")
    module = named("timm/test_resnet").outline(torch.bfloat16)
    assert make_case(named("timm/test_resnet"), module, "vision", sizes=SMALL).inputs[0].shape == (2, 3, 160, 160)
