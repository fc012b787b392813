"""Small models, whose weights vLLM draws at random, and what they say."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

_ALL = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "vocab_size": 128,
    "max_position_embeddings": 512,
    "torch_dtype": "float32",
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_WINDOWS = {"sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"]}
# On a CPU vLLM's attention over a latent cache has one size of it: 512 and 64.
_LATENT = {"q_lora_rank": 32, "kv_lora_rank": 512, "qk_nope_head_dim": 32, "qk_rope_head_dim": 64, "v_head_dim": 32}
_EXPERTS = {"n_routed_experts": 8, "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1, "n_shared_experts": 1}

#: Model -> (architecture, its type, what is its own).
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "Llama": ("LlamaForCausalLM", "llama", {}),
    "Qwen3": ("Qwen3ForCausalLM", "qwen3", {}),
    "Gemma 3": ("Gemma3ForCausalLM", "gemma3_text", {"query_pre_attn_scalar": 32, **_WINDOWS}),
    "GLM 4": ("Glm4ForCausalLM", "glm4", {"partial_rotary_factor": 0.5, "attention_bias": True}),
    "DeepSeek-V3": (
        "DeepseekV3ForCausalLM",
        "deepseek_v3",
        {
            **_LATENT,
            **_EXPERTS,
            "num_key_value_heads": 4,
            "moe_intermediate_size": 32,
            "first_k_dense_replace": 1,
            "routed_scaling_factor": 1.0,
            "scoring_func": "sigmoid",
            "topk_method": "noaux_tc",
            "norm_topk_prob": True,
            "num_nextn_predict_layers": 0,
        },
    ),
    "GPT-OSS": (
        "GptOssForCausalLM",
        "gpt_oss",
        {"num_local_experts": 4, "num_experts_per_tok": 2, "swiglu_limit": 7.0, **_WINDOWS},
    ),
}


def write_model(name: str, folder: Path) -> str:
    """Write a model's configuration; return the folder, which vLLM takes for a model."""
    architecture, kind, own = MODELS[name]
    folder.mkdir(parents=True, exist_ok=True)
    config = {**_ALL, "architectures": [architecture], "model_type": kind, **own}
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


#: vLLM's CPU platform turns the prefix cache off for a latent cache.
WITHOUT_PREFIXES = {"DeepSeek-V3"}

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
