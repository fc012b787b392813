"""For `bridge bench`: the architectures that are asked for, of the zoo or as timm and transformers name them."""

from __future__ import annotations

import argparse
from functools import partial

from torch import nn

from . import zoo
from .zoo import Architecture

#: How configurations of transformers call their number of layers.
_LAYERS = ("num_hidden_layers", "n_layers", "n_layer", "num_layers")

#: Layers that a model of transformers gets.
_FEW = 2

#: What classes of transformers read, by their heads; all others read tokens, and predict none.
_KINDS = {"ForCausalLM": "decoder", "LMHeadModel": "decoder", "ForImageClassification": "image"}


def asked_for(options: argparse.Namespace) -> list[Architecture]:
    """List the architectures that `--architectures` names, or those of the zoo that `--only` leaves."""
    return [named(name) for name in options.architectures] or zoo.selected(options.only)


def named(name: str) -> Architecture:
    """Return an architecture by its name.

    name: of the zoo; "timm/<a model of timm>"; or "transformers/<Stem>:<Head>", the class `<Stem><Head>` with the
    default values of `<Stem>Config`, and two layers.  ValueError for any other name.
    """
    for architecture in zoo.ZOO:
        if architecture.name == name:
            return architecture
    library, _, rest = name.partition("/")
    stem, _, head = rest.partition(":")
    if library == "timm" and rest:
        return Architecture(name, "image", library, zoo.of_timm(rest))
    if library == "transformers" and head:
        return Architecture(name, _KINDS.get(head, "encoder"), library, partial(_by_default, stem, head))
    raise ValueError(f'"{name}" is neither of the zoo, nor timm/MODEL, nor transformers/STEM:HEAD')


def _by_default(stem: str, head: str) -> nn.Module:
    import transformers  # weight: an optional package

    config = getattr(transformers, f"{stem}Config")()
    for layers in _LAYERS:
        if hasattr(config, layers):
            setattr(config, layers, _FEW)
    return getattr(transformers, stem + head)(config)
