"""For `bridge bench`: architectures of transformers and timm with random weights and few layers.

Nothing is downloaded.  Widths, heads and positions are those of the models whose name each carries; layers repeat, so
there are few of them, and the vocabulary shrinks with them, for the last projection to keep its share of the time.
Every architecture has a small configuration too, which a CPU runs in a second.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from .diffusion import DiffusionTransformer

#: Arguments of a model's configuration.
Values = dict[str, Any]


@dataclass(frozen=True)
class Architecture:
    """Hold a model, in its own size and a small one.

    library: what has to be importable; make: builds the module from the values of `full`, or of `full` updated by
    `small`; kind: "decoder", "recurrent" (a decoder without a cache of keys and values), "encoder", "image" or
    "diffusion", which decides the modes.
    """

    name: str
    kind: str
    library: str
    make: Callable[..., nn.Module]
    full: Values = field(default_factory=dict)
    small: Values = field(default_factory=dict)

    @property
    def modes(self) -> tuple[str, ...]:
        """Return the modes that this kind of model is run in."""
        if self.kind == "decoder":
            return ("prefill", "decode", "training")
        if self.kind == "recurrent":
            return ("prefill",)
        return ("prefill" if self.kind == "encoder" else "vision", "training")

    @property
    def available(self) -> bool:
        """Return whether its library is installed; whether that has the architecture, `build` finds out."""
        return importlib.util.find_spec(self.library) is not None

    def build(self, dtype: torch.dtype, device: str, small: bool = False) -> nn.Module:
        """Return the module with random weights, for inference; AttributeError where the library is too old for it."""
        torch.manual_seed(0)
        with torch.device(device), _default_dtype(dtype):
            module = self.make(**self._arguments(small))
            _disturb(module)
        return module.eval().requires_grad_(False)

    def outline(self, dtype: torch.dtype, small: bool = False) -> nn.Module:
        """Return the module on the CPU, to be compiled and not run: its memory is allocated and never written to."""
        with torch.device("meta"), _default_dtype(dtype):
            module = self.make(**self._arguments(small))
        return module.to_empty(device="cpu").eval().requires_grad_(False)

    def _arguments(self, small: bool) -> Values:
        return {**self.full, **(self.small if small else {})}


def _disturb(module: nn.Module) -> None:
    """Change scales of one, shifts of zero and weights of zero: they would hide what goes wrong before them."""
    with torch.no_grad():
        for weight in module.parameters():
            if weight.dim() < 2 or not weight.any():
                weight.add_(0.02 * torch.randn_like(weight))


@contextlib.contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _transformers(stem: str, head: str, config: str = "Config") -> Callable[..., nn.Module]:
    """Return a function that builds `<stem><head>` of transformers from a `<stem><config>`."""

    def make(**values: object) -> nn.Module:
        import transformers  # weight: an optional package

        return getattr(transformers, stem + head)(getattr(transformers, stem + config)(**values))

    return make


def of_timm(name: str) -> Callable[..., nn.Module]:
    """Return a function that builds a model that timm has under a name."""

    def make(**values: object) -> nn.Module:
        import timm  # weight: an optional package

        return timm.create_model(name, pretrained=False, **values)

    return make


def _mixer(**values: object) -> nn.Module:
    """Build timm's class itself: its named mixers have a fixed depth."""
    from timm.models.mlp_mixer import MlpMixer  # weight: an optional package

    return MlpMixer(**values)


def _decoder(name: str, stem: str, small: Values | None = None, config: str = "Config", **full: object) -> Architecture:
    """Describe a causal language model of two layers."""
    full = {"num_hidden_layers": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, **full}
    make = _transformers(stem, "ForCausalLM", config)
    return Architecture(name, "decoder", "transformers", make, full, small or _SMALL_DECODER)


_SMALL_DECODER = {
    "hidden_size": 128,
    "intermediate_size": 192,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "vocab_size": 128,
    "num_hidden_layers": 1,
}

_NO_HEAD_DIM = {k: v for k, v in _SMALL_DECODER.items() if k != "head_dim"}

DECODERS = [
    _decoder(
        "llama3-8b", "Llama", hidden_size=4096, intermediate_size=14336, num_attention_heads=32,
        num_key_value_heads=8, head_dim=128, vocab_size=8192, max_position_embeddings=8192, rms_norm_eps=1e-5,
    ),
    _decoder(
        "qwen3-8b", "Qwen3", hidden_size=4096, intermediate_size=12288, num_attention_heads=32,
        num_key_value_heads=8, head_dim=128, vocab_size=8192, max_position_embeddings=8192,
    ),
    _decoder(
        "gemma3-4b", "Gemma3",
        {**_SMALL_DECODER, "num_hidden_layers": 2, "sliding_window": 16, "query_pre_attn_scalar": 32},
        "TextConfig",
        hidden_size=2560, intermediate_size=10240, num_attention_heads=8, num_key_value_heads=4, head_dim=256,
        vocab_size=15360,
        max_position_embeddings=8192, sliding_window=1024, layer_types=["sliding_attention", "full_attention"],
    ),
    _decoder(
        "phi3-mini", "Phi3", _NO_HEAD_DIM, hidden_size=3072, intermediate_size=8192, num_attention_heads=32,
        num_key_value_heads=32, vocab_size=2048, max_position_embeddings=4096,
    ),
    _decoder(
        "olmo2-7b", "Olmo2", _NO_HEAD_DIM, hidden_size=4096, intermediate_size=11008, num_attention_heads=32,
        num_key_value_heads=32, vocab_size=6272, max_position_embeddings=4096,
    ),
    _decoder(
        "deepseek-v3", "DeepseekV3",
        {**_NO_HEAD_DIM, "num_key_value_heads": 4, "q_lora_rank": 96, "kv_lora_rank": 64, "qk_nope_head_dim": 32,
         "qk_rope_head_dim": 16, "v_head_dim": 32},
        hidden_size=7168, intermediate_size=18432, num_attention_heads=128, num_key_value_heads=128, q_lora_rank=1536,
        kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, vocab_size=4096,
        first_k_dense_replace=2, max_position_embeddings=4096,
    ),
    _decoder(
        "glm4-9b", "Glm4", hidden_size=4096, intermediate_size=13696, num_attention_heads=32, num_key_value_heads=2,
        head_dim=128, vocab_size=7680, max_position_embeddings=8192,
    ),
    _decoder(
        "gpt-neox-7b", "GPTNeoX",
        {k: v for k, v in _NO_HEAD_DIM.items() if k != "num_key_value_heads"},
        hidden_size=4096, intermediate_size=16384, num_attention_heads=32, vocab_size=3200,
        max_position_embeddings=4096,
    ),
]  # fmt: skip

ENCODERS = [
    Architecture(
        "bert-large", "encoder", "transformers", _transformers("Bert", "Model"),
        {"hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 2,
         "vocab_size": 4096},
        {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 1,
         "vocab_size": 128},
    ),
    Architecture(
        "t5-large", "encoder", "transformers", _transformers("T5", "EncoderModel"),
        {"d_model": 1024, "d_kv": 64, "d_ff": 4096, "num_layers": 2, "num_heads": 16, "vocab_size": 4096},
        {"d_model": 64, "d_kv": 16, "d_ff": 96, "num_heads": 4, "num_layers": 1, "vocab_size": 128},
    ),
]  # fmt: skip

#: What the issue of the project does not name: a state-space model, and below a diffusion transformer.
RECURRENT = [
    Architecture(
        "mamba2-2.7b", "recurrent", "transformers", _transformers("Mamba2", "ForCausalLM"),
        {"hidden_size": 2560, "num_heads": 80, "head_dim": 64, "state_size": 128, "n_groups": 1, "num_hidden_layers": 1,
         "vocab_size": 1024, "chunk_size": 256, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2},
        {"hidden_size": 64, "num_heads": 8, "head_dim": 16, "state_size": 16, "vocab_size": 128, "chunk_size": 16},
    ),
]  # fmt: skip

_SMALL_IMAGE = {"image_size": 32, "num_labels": 10}

VISION = [
    Architecture(
        "vit-base", "image", "transformers", _transformers("ViT", "ForImageClassification"),
        {"num_hidden_layers": 2, "num_labels": 1000},
        {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "patch_size": 8, "num_hidden_layers": 1,
         **_SMALL_IMAGE},
    ),
    Architecture(
        "convnext-tiny", "image", "transformers", _transformers("ConvNext", "ForImageClassification"),
        {"depths": [1, 1, 2, 1], "hidden_sizes": [96, 192, 384, 768], "num_labels": 1000,
         "layer_scale_init_value": 0.1},
        {"hidden_sizes": [16, 24], "depths": [1, 1], "num_stages": 2, **_SMALL_IMAGE},
    ),
    Architecture(
        "swin-tiny", "image", "transformers", _transformers("Swin", "ForImageClassification"),
        {"depths": [2, 2, 2, 2], "num_labels": 1000},
        {"embed_dim": 16, "depths": [2, 1], "num_heads": [2, 4], "window_size": 4, "patch_size": 2, **_SMALL_IMAGE},
    ),
    Architecture(
        "eva02-base", "image", "timm", of_timm("eva02_base_patch14_224"), {"depth": 2},
        {"depth": 1, "embed_dim": 64, "num_heads": 4, "img_size": 28, "num_classes": 10},
    ),
    Architecture(
        "mixer-b16", "image", "timm", _mixer, {"num_blocks": 2, "patch_size": 16, "embed_dim": 768},
        {"num_blocks": 1, "embed_dim": 64, "img_size": 32, "num_classes": 10},
    ),
    Architecture(
        "dit-xl", "diffusion", "torch", DiffusionTransformer,
        {"size": 32, "patch": 2, "channels": 4, "width": 1152, "heads": 16, "depth": 2},
        {"size": 8, "width": 64, "heads": 4, "depth": 1},
    ),
]  # fmt: skip

ZOO = [*DECODERS, *ENCODERS, *RECURRENT, *VISION]


def selected(parts: list[str]) -> list[Architecture]:
    """List the architectures in whose name one of the parts occurs; all of them, for no parts."""
    return [a for a in ZOO if not parts or any(part in a.name for part in parts)]
