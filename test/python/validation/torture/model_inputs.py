"""Make the inputs of a model that nobody described: by the names of its forward's arguments, tried in eager mode."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from .model_configs import FIRST_FREE_TOKEN

BATCH, LENGTH = 2, 16

#: What a forward that does not fit an input raises.
DOES_NOT_FIT = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NotImplementedError, OSError,
    RuntimeError, TypeError, ValueError,
)  # fmt: skip

#: Arguments that are there for a call that nobody is to learn from, or for generating token by token.
_FLAGS = {"use_cache": False, "output_router_logits": False, "return_loss": False}

#: What is given besides the first input, if the forward has it; in turn, until one call works.
_COMPANIONS: tuple[tuple[str, ...], ...] = (
    (),
    ("decoder_input_ids",),
    ("pixel_values",),
    ("input_ids",),
    ("bbox",),
    ("encoder_hidden_states",),
    ("attention_mask",),
    ("pixel_values", "attention_mask"),
    ("pixel_values", "bbox"),
    ("input_ids", "decoder_input_ids"),
    ("bbox", "decoder_input_ids"),
    ("pixel_values", "attention_mask", "token_type_ids"),
    ("decoder_inputs_embeds",),
    ("token_type_ids",),
    ("pixel_mask",),
    ("input_features",),
    ("input_values",),
)

_FIRST = (
    "input_ids", "pixel_values", "input_values", "input_features", "inputs_embeds", "hidden_states",
    "pixel_values_videos", "past_values", "inputs", "x", "spectrogram", "audio_values",
)  # fmt: skip


def find_inputs(module: nn.Module) -> dict[str, torch.Tensor]:
    """Return named inputs that a module runs on; raise the last error of the tries where there are none."""
    parameters = inspect.signature(module.forward).parameters
    last: BaseException = TypeError(f"no known input among {', '.join(parameters)}")
    for given in (shaped for names in _tries(module, parameters) for shaped in _shapes(module, names)):
        try:
            with torch.no_grad():
                tensors(module(**given, **flags(module)))
            return given
        except DOES_NOT_FIT as error:
            last = error
    raise last


def flags(module: nn.Module) -> dict[str, Any]:
    """Return options of a forward that leave out what is not the model's result."""
    parameters = inspect.signature(module.forward).parameters
    return {name: value for name, value in _FLAGS.items() if name in parameters}


def tensors(value: Any) -> tuple[torch.Tensor, ...]:
    """Return the floating point tensors in a model's output, in order; caches, which are no tuples, are left out."""
    if isinstance(value, torch.Tensor):
        return (value,) if value.is_floating_point() else ()
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        return tuple(tensor for part in value for tensor in tensors(part))
    return ()


def _tries(module: nn.Module, parameters: Any) -> Iterator[tuple[str, ...]]:
    main = getattr(module, "main_input_name", "")
    firsts = [name for name in dict.fromkeys((main, *_FIRST)) if name in parameters]
    required = tuple(n for n, p in parameters.items() if p.default is p.empty and p.kind == p.POSITIONAL_OR_KEYWORD)
    for first in firsts[:3]:
        for companions in _COMPANIONS:
            names = tuple(dict.fromkeys((first, *companions, *required)))
            if all(name in parameters for name in names):
                yield names


def _shapes(module: nn.Module, names: tuple[str, ...]) -> Iterator[dict[str, torch.Tensor]]:
    """Yield inputs of those names in several shapes, where a name leaves that open."""
    for variant in range(4):
        with contextlib.suppress(KeyError, IndexError):
            yield {name: _make(module.config, name, variant) for name in names}
        if not any(name.startswith(("pixel", "input_f", "input_v", "audio", "hidden")) for name in names):
            return


def _make(config: Any, name: str, variant: int) -> torch.Tensor:
    """Make an input; raise KeyError for a name without a rule."""
    generator = torch.Generator().manual_seed(len(name))
    if name in ("attention_mask", "decoder_attention_mask"):
        return torch.ones(BATCH, LENGTH, dtype=torch.int64)
    if name.endswith("token_type_ids"):
        return torch.zeros(BATCH, LENGTH, dtype=torch.int64)
    if name == "bbox":
        return torch.tensor([1, 2, 9, 12]).expand(BATCH, LENGTH, 4).contiguous()
    if name.endswith("input_ids"):
        most = max(_number(config, 128, "vocab_size"), FIRST_FREE_TOKEN + 2)
        return torch.randint(FIRST_FREE_TOKEN, most, (BATCH, LENGTH), generator=generator)
    if name == "pixel_mask":
        return torch.ones(BATCH, _number(config, 32, "image_size"), _number(config, 32, "image_size")).long()
    return torch.randn(_size(config, name, variant), generator=generator)


def _size(config: Any, name: str, variant: int) -> tuple[int, ...]:
    width = _number(config, 64, "hidden_size", "d_model", "embed_dim")
    if name in ("inputs_embeds", "encoder_hidden_states", "decoder_inputs_embeds", "hidden_states"):
        return (BATCH, LENGTH, width)
    if name.startswith("pixel_values"):
        return _image_size(config, name, variant)
    if name == "past_values":
        return (BATCH, _number(config, 32, "context_length"), _number(config, 1, "num_input_channels"))
    if name in ("input_values", "audio_values", "input_features", "spectrogram", "inputs", "x"):
        return _sound_size(config, variant)
    raise KeyError(name)


def _image_size(config: Any, name: str, variant: int) -> tuple[int, ...]:
    side = (_number(config, 32, "image_size", "crop_size"), 64, 224)[variant]
    channels = _number(config, 3, "num_channels", "in_chans", "in_channels")
    frames = (_number(config, 4, "num_frames"),) if "video" in name or hasattr(config, "num_frames") else ()
    return (BATCH, *frames, channels, side, side)


def _sound_size(config: Any, variant: int) -> tuple[int, ...]:
    bins = _number(config, 16, "num_mel_bins", "feature_size", "input_feat_per_channel", "n_mels")
    frames = 2 * _number(config, 32, "max_source_positions")
    return ((BATCH, 2000), (BATCH, bins, frames), (BATCH, 64, bins), (BATCH, 1, 2000))[variant]


def _number(config: Any, default: int, *names: str) -> int:
    """Return the first of these numbers that a configuration, or one in it, has."""
    parts = [config, *(getattr(config, part, None) for part in getattr(config, "sub_configs", {}))]
    for name in names:
        for part in parts:
            value = getattr(part, name, None)
            value = value[0] if isinstance(value, (list, tuple)) and value else value
            if isinstance(value, int) and not isinstance(value, bool):
                return value
    return default
