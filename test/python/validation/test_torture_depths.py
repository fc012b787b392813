"""Test the generator of models: which blocks of timm's architectures it leaves out."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torture.model_depths import BLOCKS, fewer_blocks, shallow
from torture.torchvision_ops import declare_operators


@dataclasses.dataclass(frozen=True)
class _Block:
    type: str
    d: int


@dataclasses.dataclass(frozen=True)
class _Config:
    blocks: tuple[_Block, ...]
    derived: int = dataclasses.field(default=0, init=False)


class _Net:
    def __init__(self, width: int, depth: int = 12, **kwargs: Any):
        self.width, self.depth, self.others = width, depth, kwargs


class _Wide(_Net):
    def __init__(self, **kwargs: Any):
        super().__init__(width=1024, **kwargs)


def test_every_stage_keeps_its_first_blocks():
    small = shallow({"depths": (1, 3, 18, 3), "block_args": [["a"], ["b", "c", "d"]], "depth": [[1, 4, 0], [1, 4, 0]]})
    assert small["depths"] == (1, 2, 2, 2)
    assert small["block_args"] == [["a"], ["b", "c"]]
    assert small["depth"] == [[1, 2, 0], [1, 2, 0]]


def test_only_numbers_of_blocks_become_smaller():
    given = {
        "embed_dims": (64, 128),
        "num_levels": 3,
        "post_layers": ("ca", "ca"),
        "window_size": 7,
        "depth_wise": True,
    }
    assert shallow(given) == given


def test_blocks_of_another_kind_stay_inside_the_depth():
    small = shallow({"depth": 12, "local_up_to_layer": 10, "global_attn_indexes": [2, 5, 8, 11]})
    assert small["local_up_to_layer"] < small["depth"] == BLOCKS
    assert all(position < small["depth"] for position in small["global_attn_indexes"])


def test_configurations_are_copied_not_changed():
    config = _Config((_Block("bottle", 4), _Block("self_attn", 1)))
    small = shallow({"cfg": config, "kwargs": {"layers": [3, 4]}})
    assert [block.d for block in small["cfg"].blocks] == [BLOCKS, 1]
    assert [block.d for block in config.blocks] == [4, 1]
    assert small["kwargs"] == {"layers": [2, 2]}


def test_defaults_of_a_constructor_become_smaller_too():
    with fewer_blocks(_Net):
        assert _Net(8).depth == BLOCKS
        assert _Wide(depth=5).depth == 5
    assert _Net(8).depth == 12


def test_arguments_for_a_base_class_become_smaller():
    with fewer_blocks(_Wide):
        made = _Wide(depth=5, stages=(3, 3))
    assert (made.width, made.depth, made.others) == (1024, BLOCKS, {"stages": (BLOCKS, BLOCKS)})


def test_what_has_no_fewer_blocks_is_built_with_all_of_them():
    declare_operators()  # before timm imports torchvision
    timm = pytest.importorskip("timm")
    from torture.model_zoo import build

    few, all_of_them = (
        build(f"timm/{name}", training=False).module for name in ("vit_relpos_small_patch16_224", "regnety_008_tv")
    )
    assert len(few.blocks) == BLOCKS
    whole = timm.create_model("regnety_008_tv", num_classes=10)
    assert _shapes(all_of_them) == _shapes(whole)


def test_no_path_is_dropped_in_training():
    declare_operators()
    pytest.importorskip("timm")
    from torture.model_zoo import build

    model = build("timm/swin_tiny_patch4_window7_224", training=True)
    first, second = (model.call()(*model.inputs.values())[0] for _ in range(2))
    assert torch.equal(first, second)


def _shapes(module: torch.nn.Module) -> list[torch.Size]:
    return [parameter.shape for parameter in module.parameters()]
