"""Make small configurations of architectures of transformers, by rules on the names of their values.

A value is known by its name alone, at any depth of a configuration of configurations.  Names decide what has to be
equal (widths), a multiple (widths and heads), or as long as there are layers (lists).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

LAYERS, WIDTH, HEADS, HEAD, VOCABULARY, IMAGE, PATCH = 2, 64, 4, 16, 128, 32, 8

#: Larger than any value.
_STAYS = 1 << 60

#: Left to the configuration, which makes them of the number of layers.
_DERIVED = frozenset({"out_features", "out_indices", "stage_names", "per_layer_config", "id2label", "label2id"})

#: By the name of a value, what it is in a small model; the first that matches counts.
_SMALL: tuple[tuple[str, int], ...] = tuple(
    (rf"(?:.*_)?(?:{names})", value)
    for names, value in (
        ("num_feat_extract_layers|num_conv_pos_embeddings", _STAYS),
        ("num_key_value_heads|num_kv_heads|n_kv_heads|num_key_value_groups|multi_query_group_num", 2),
        (
            "num_attention_heads|n_heads?|num_heads|attention_heads|linear_num_(?:key|value)_heads|num_query_heads",
            HEADS,
        ),
        ("mamba_n_heads|mamba_num_heads|linear_num_heads|index_n_heads|num_attn_heads", HEADS),
        ("qk_head_dim", 2 * HEAD),
        (
            "d_kv|dim_head|(?:v_|rope_|nope_|key_|value_)?head_dim|rotary_dim|kv_channels|d_head|attention_head_dim",
            HEAD,
        ),
        ("head_size|head_dim_[a-z]+|query_pre_attn_scalar", HEAD),
        ("num_experts_per_tok(?:en)?|moe_top_?k|top_k|moe_k|num_selected_experts|n_experts_per_token", 2),
        ("num_(?:local_|routed_)?experts|n_routed_experts|moe_num_experts|num_local_experts", 4),
        ("n_group|topk_group|num_expert_groups?|mamba_n_groups|first_k_dense_replace|n_groups", 1),
        ("kv_lora_rank|q_lora_rank|o_lora_rank|hc_lowrank|laurel_rank", 32),
        ("num_kv_shared_layers|num_mtp_layers|num_nextn_predict_layers|num_dense_layers|max_window_layers", 0),
        ("num_hidden_layers|n_layers?|num_layers|(?:en|de)coder_layers|num_(?:en|de)coder_layers|depth", LAYERS),
        (
            "layers|num_blocks|num_(?:conf|cross|fusion|query|timestamp_prediction|spatial|multimodal)[a-z_]*layers",
            LAYERS,
        ),
        ("(?:.*_)?vocab_size|n_vocab|vocab_size_per_layer_input|num_embeddings|num_embeds", VOCABULARY),
        ("max_position_embeddings|n_positions|n_ctx|max_(?:source|target)_positions|max_seq_len|seq_len", 64),
        ("(?:pretrain_)?image_size|img_size|input_size|crop_size|resolution", IMAGE),
        ("patch_size|encoder_stride", PATCH),
        ("sliding_window(?:_size)?|attention_chunk_size|chunk_size|local_attention|block_size|attention_window", 8),
        ("num_mel_bins|n_mel_bins|num_frames|mel_dim|input_feat_size", 16),
        ("num_queries|num_query_tokens|num_denoising|num_parallel_samples|resampler_n_latents", 8),
        ("mamba_d_state|state_size|time_step_rank|mamba_dt_rank|d_state|ssm_state_size", HEAD),
        ("intermediate_size(?:_mlp)?|ffn_dim|d_ff|mlp_dim|ffn_hidden_size|d_inner|dim_feedforward", 4 * WIDTH),
        ("linear_units|feedforward_dim|intermediate_dim|feed_forward_hidden_size|n_inner|ff_dim|expert_dim", 4 * WIDTH),
        ("hidden_size|d_model|n_embd|embed_dim|hidden_dim|emb_dim|embedding_size|width|d_embed", WIDTH),
        ("hidden_size_global|projection_dim|out_hidden_size|embedding_dim|word_embed_proj_dim|dim|output_dim", WIDTH),
        ("project_dim|text_embed_dim|projection_size|input_dim|projector_hidden_size|pooler_output_size", WIDTH),
    )
)

#: Values that are only large, and that no other has to agree with.
_DEEP = re.compile(r"(?:.*_)?(?:layers?|depths?|blocks|vocab_size|experts|image_size|img_size|queries|num_denoising).*")

#: Tokens that mean something; all else is drawn from those after them.
FIRST_FREE_TOKEN = 48


def rule(name: str) -> int | None:
    """Return the small value of that name; None for one that stays."""
    for pattern, value in _SMALL:
        if re.fullmatch(pattern, name):
            return value
    return None


class Shrink:
    """Make the values of one configuration small; wide: keeps its widths, for one whose widths depend on others."""

    def __init__(self, wide: bool = False):
        self._wide = wide
        self._tokens: Iterator[int] = iter(range(3, FIRST_FREE_TOKEN))
        self._known: dict[int, int] = {}

    def values(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return smaller values, also in nested configurations; lists of one value a layer keep every kind of layer."""
        kinds = _layers_kept(given)
        given = {name: value for name, value in given.items() if str(name).lstrip("_") not in _DERIVED}
        small = {name: self._value(str(name), value, kinds) for name, value in given.items()}
        return _with_latent_attention(given, _with_state_space(small))

    def _value(self, name: str, value: Any, kinds: _Layers) -> Any:
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, dict):
            return _rotary(value) if name.startswith("rope") else self.values(value)
        if isinstance(value, (list, tuple)):
            return self._list(name, value, kinds)
        if not isinstance(value, int):
            return value
        return self._number(name, value, kinds)

    def _number(self, name: str, value: int, kinds: _Layers) -> int:
        if re.fullmatch(r".*(?:token_id|_token_index|token_id_\w+|_id)", name) and value >= 3:
            return self._token(value)
        if name == kinds.name:
            return len(kinds.kept)
        small = rule(name)
        if small is None or (self._wide and not _DEEP.fullmatch(name)):
            return value
        return min(value, small) if value >= 0 else value

    def _token(self, value: int) -> int:
        """Return one small number for each token, which is the same in all configurations of a configuration."""
        if value not in self._known:
            self._known[value] = next(self._tokens)
        return self._known[value]

    def _list(self, name: str, value: Any, kinds: _Layers) -> Any:
        if len(value) == kinds.count and kinds.count > 4:
            return [self._value(name, value[i], kinds) for i in kinds.kept]
        if re.fullmatch(r"depths|.*num_blocks|blocks_per_stage|num_block_repeats", name):
            return [min(v, 2) for v in value]
        if re.fullmatch(r".*image_size|.*patch_size|intermediate_size|num_attention_heads", name):
            return [self._value(name, v, kinds) for v in value]
        if re.fullmatch(r".*(?:indices|indexes|_layers|attention_blocks)", name) and _numbers(value):
            return sorted({min(v, LAYERS) for v in value}) if kinds.count else value
        return value


def _with_state_space(values: dict[str, Any]) -> dict[str, Any]:
    """Set the heads of a state-space model: as many as make its expanded width."""
    for heads, size, expand in (
        ("mamba_n_heads", "mamba_d_head", "mamba_expand"),
        ("mamba_num_heads", "mamba_head_dim", "expand"),
        ("num_heads", "head_dim", "expand"),
    ):
        if all(isinstance(values.get(name), int) for name in (heads, size, expand, "hidden_size")):
            values[heads] = values[expand] * values["hidden_size"] // values[size]
    return values


def _with_latent_attention(given: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """Set heads of keys of a rank that is expanded for every head: as many as heads of queries, and as wide."""
    if not given.get("kv_lora_rank"):
        return values
    if given.get("num_key_value_heads") == given.get("num_attention_heads"):
        values["num_key_value_heads"] = values.get("num_attention_heads")
    parts = ("qk_nope_head_dim", "qk_rope_head_dim")
    if "head_dim" in given and given["head_dim"] == sum(given.get(part) or 0 for part in parts):
        values["head_dim"] = sum(values.get(part) or 0 for part in parts)
    return values


class _Layers:
    """Hold the layers that a configuration keeps: of `count` that its value `name` says, the positions `kept`."""

    def __init__(self, name: str = "", count: int = 0, kept: tuple[int, ...] = ()):
        self.name, self.count, self.kept = name, count, kept


def _layers_kept(given: dict[str, Any]) -> _Layers:
    for name in ("num_hidden_layers", "n_layer", "n_layers", "num_layers"):
        count = given.get(name)
        if isinstance(count, int) and count > LAYERS:
            lists = [v for v in given.values() if isinstance(v, (list, tuple)) and len(v) == count]
            return _Layers(name, count, _first_of_each_kind(count, lists))
    return _Layers()


def _first_of_each_kind(count: int, lists: list[Any]) -> tuple[int, ...]:
    """Return positions of the first layers that differ in what the lists say of them, two at least, four at most."""
    first: dict[str, int] = {}
    for position in range(count):
        first.setdefault(repr([values[position] for values in lists]), position)
    kept = sorted(set(first.values()))[:4]
    return tuple(kept) if len(kept) >= LAYERS else (0, 1)


def _rotary(values: dict[str, Any]) -> dict[str, Any]:
    """Return parameters of a rotary embedding: lists of one number for each pair of a head's elements get shorter."""
    changed = {k: _rotary(v) if isinstance(v, dict) else v for k, v in values.items()}
    sections = values.get("mrope_section")
    if sections:
        first = HEAD // 2 // len(sections)
        changed["mrope_section"] = [HEAD // 2 - first * (len(sections) - 1)] + [first] * (len(sections) - 1)
    for name in ("long_factor", "short_factor"):
        if name in values:
            changed[name] = list(values[name][: HEAD // 2])
    return changed


def _numbers(value: Any) -> bool:
    return all(isinstance(v, int) and not isinstance(v, bool) and v >= 0 for v in value)
