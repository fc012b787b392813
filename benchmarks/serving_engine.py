"""Run one engine of vLLM's for benchmarks/serving.py, which tells it what to measure: a line of JSON for each question.

    {"do": "time", "case": "decode 8"}    -> {"seconds": ..., "tokens": ...}
    {"do": "profile", "case": "decode 8"} -> {"launches": ..., "us": {kernel class: ...}} of one step
    {"do": "error"}                       -> {"error": ...}, of the logits against float32

Weights are drawn at random, the same in each engine of a model and a dtype.
"""

from __future__ import annotations

import collections
import json
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TextIO

#: What the models have in common, and what is their own.
_ALL = {"num_hidden_layers": 4, "num_key_value_heads": 8, "num_attention_heads": 32, "head_dim": 128} | {
    "hidden_size": 4096, "hidden_act": "silu", "torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": 2,
    "tie_word_embeddings": False, "attention_bias": False, "max_position_embeddings": 8192,
}  # fmt: skip
MODELS: dict[str, dict[str, Any]] = {
    "llama-3-8b": {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "intermediate_size": 14336,
        "vocab_size": 128256, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
    },
    "qwen3-8b": {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "intermediate_size": 12288,
        "vocab_size": 151936, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0,
    },
}  # fmt: skip
_TINY = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "vocab_size": 256} | {
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "torch_dtype": "float32",
}  # fmt: skip


class Case(NamedTuple):
    """Say what is timed: `sequences` prompts of `prompt` tokens; `steps` tokens of each count, or the prompts for 0."""

    sequences: int
    prompt: int
    steps: int


CASES = {
    "prefill 2048": Case(1, 2048, 0),
    "decode 1": Case(1, 32, 48),
    "decode 8": Case(8, 32, 48),
    "decode 64": Case(64, 32, 48),
}
TINY_CASES = {"prefill 64": Case(1, 64, 0), "decode 1": Case(1, 8, 8), "decode 4": Case(4, 8, 8)}

#: Tokens that a request has made before those that count: by then all requests are decoding.
BEFORE = 8

#: The first whose expression is found in a kernel's name is the kernel's class.
CLASSES = {
    "cache": r"reshape_and_cache",
    "attention": r"flash|fmha|attention|attn",
    "generated": r"^triton_",
    "vLLM's own": r"vllm::(?!cutlass)",
    "matrix product": r"gemm|gemv|nvjet|cutlass|xmma|splitK|cublas",
    "copy": r"Memcpy|Memset",
}

#: Passes that are no fusions, and stay on.
_NO_FUSIONS = ("eliminate_noops",)


def write_model(name: str, tiny: bool, folder: Path) -> Path:
    """Write a model's configuration; return the folder, which vLLM takes for a model."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(_ALL | MODELS[name] | (_TINY if tiny else {})))
    return folder


# ---------------------------------------------------------------------------------------------------------
# The engine
# ---------------------------------------------------------------------------------------------------------


def engine_options(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments for `vllm.LLM` that all variants of a model and a dtype have."""
    tiny = spec["tiny"]
    folder = write_model(spec["model"], tiny, Path(spec["folder"], "model"))
    sizes = {"max_model_len": 128, "max_num_seqs": 4} if tiny else {"max_model_len": 4096, "max_num_seqs": 64}
    memory = {} if tiny else {"kv_cache_memory_bytes": 1 << 30, "gpu_memory_utilization": 0.1}
    captured = {} if tiny else {"cudagraph_capture_sizes": sorted({c.sequences for c in CASES.values()})}
    return {
        "model": str(folder), "load_format": "dummy", "skip_tokenizer_init": True, "seed": 0,
        "enable_prefix_caching": False, "max_num_batched_tokens": 128 if tiny else 2048,
        "dtype": "float32" if tiny else "bfloat16", "quantization": "fp8" if spec["dtype"] == "fp8" else None,
        "compilation_config": captured, **sizes, **memory,
    }  # fmt: skip


def variant_options(spec: dict[str, Any]) -> dict[str, Any] | None:
    """Return the arguments of one variant; None where it would be the same as vLLM's defaults.

    variant: a: vLLM's defaults; b: those with Bridge; c: vLLM's fusions off; d: off, with Bridge; e: vLLM's own kernels
    and the fusions made for them, on.
    """
    options, variant = engine_options(spec), spec["variant"]
    if variant in "cd":
        fusions = default_fusions(options)
        if not fusions:
            return None
        options["compilation_config"]["pass_config"] = dict.fromkeys(fusions, False)
    if variant == "e":
        options = _by_hand(options)
    if variant in "bd":
        options["additional_config"] = {"bridge": spec["bridge"]}
    return options


def default_fusions(options: dict[str, Any]) -> list[str]:
    """Return the names of the fusions that vLLM turns on for a model by itself."""
    from vllm.engine.arg_utils import EngineArgs
    from vllm.usage.usage_lib import UsageContext

    passes = EngineArgs(**options).create_engine_config(UsageContext.LLM_CLASS).compilation_config.pass_config
    return [name for name, value in vars(passes).items() if value is True and name not in _NO_FUSIONS]


def _by_hand(options: dict[str, Any]) -> dict[str, Any]:
    own = ["+rms_norm", "+silu_and_mul", "+quant_fp8", "+rotary_embedding"]
    fusions = {"fuse_norm_quant": True, "fuse_act_quant": True, "enable_qk_norm_rope_fusion": True}
    norms = {name: ["vllm_c", "native"] for name in ("rms_norm", "fused_add_rms_norm")}
    compilation = options["compilation_config"] | {"custom_ops": ["none", *own], "pass_config": fusions}
    return options | {"compilation_config": compilation, "kernel_config": {"ir_op_priority": norms}}


def what_is_on(llm: Any) -> dict[str, Any]:
    """Return the parts of vLLM's resolved configuration that decide what is fused."""
    config = llm.llm_engine.vllm_config
    compilation = config.compilation_config
    return {
        "mode": str(compilation.mode),
        "graphs": str(compilation.cudagraph_mode),
        "custom_ops": list(compilation.custom_ops),
        "fusions": [name for name, value in vars(compilation.pass_config).items() if value is True],
        "additional": config.additional_config,
        "compile_s": compilation.compilation_time,
    }


def generate(llm: Any, case: Case, tokens: int) -> list[list[int]]:
    """Return what the engine says after the prompts of a case, greedily."""
    from vllm import SamplingParams

    prompts = [{"prompt_token_ids": ids} for ids in _ids(llm, case)]
    greedy = SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True, detokenize=False)
    return [list(out.outputs[0].token_ids) for out in llm.generate(prompts, greedy, use_tqdm=False)]


def _ids(llm: Any, case: Case) -> list[list[int]]:
    vocabulary = llm.llm_engine.vllm_config.model_config.get_vocab_size()
    return [[(7 * i + 13 * s + 3) % vocabulary for i in range(case.prompt)] for s in range(case.sequences)]


def timed(llm: Any, case: Case) -> dict[str, float]:
    """Return the seconds that a case takes, and the tokens made in them; a prompt's tokens count for 0 steps.

    For decoding it is the difference of a long and a short run, so that what comes before is not in it.
    """
    if not case.steps:
        return {"seconds": _seconds(llm, case, 1), "tokens": case.sequences * case.prompt}
    short = _seconds(llm, case, BEFORE)
    return {"seconds": _seconds(llm, case, BEFORE + case.steps) - short, "tokens": case.sequences * case.steps}


def _seconds(llm: Any, case: Case, tokens: int) -> float:
    start = time.perf_counter()
    generate(llm, case, tokens)
    return time.perf_counter() - start


# ---------------------------------------------------------------------------------------------------------
# Kernels
# ---------------------------------------------------------------------------------------------------------


def kernel_class(name: str) -> str:
    """Return the class of a kernel, by its name."""
    return next((kind for kind, words in CLASSES.items() if re.search(words, name, re.IGNORECASE)), "other")


def profiled(llm: Any, case: Case) -> dict[str, Any]:
    """Return the launches and the microseconds on the GPU of one step, by class, and the kernels that take the most."""
    if not case.steps:
        return of_a_step(_launches(llm, case, 1), {}, 1)
    steps = 16
    return of_a_step(_launches(llm, case, BEFORE + steps), _launches(llm, case, BEFORE), steps)


#: (kernel, "launches" or "us") -> how many.
Sums = dict[tuple[str, str], float]


def _launches(llm: Any, case: Case, tokens: int) -> Sums:
    from bridge.bench.gpu_measurements import launches

    sums: Sums = collections.defaultdict(float)
    for launch in launches(lambda: generate(llm, case, tokens)):
        sums[launch.name, "launches"] += 1
        sums[launch.name, "us"] += launch.us
    return sums


def of_a_step(longer: Sums, shorter: Sums, steps: int) -> dict[str, Any]:
    """Return what a step has, where the longer run has so many more than the shorter one."""
    by_class: dict[str, dict[str, float]] = {"launches": {}, "us": {}}
    kernels: dict[str, float] = {}
    for (name, what), value in longer.items():
        added = (value - shorter.get((name, what), 0)) / steps
        kind = kernel_class(name)
        by_class[what][kind] = by_class[what].get(kind, 0) + added
        if what == "us":
            kernels[name[:90]] = kernels.get(name[:90], 0) + added
    largest = sorted(kernels.items(), key=lambda item: -item[1])[:40]
    return {**{what: _rounded(values) for what, values in by_class.items()}, "kernels": _rounded(dict(largest))}


def _rounded(values: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 2) for name, value in values.items()}


# ---------------------------------------------------------------------------------------------------------
# The error of the logits
# ---------------------------------------------------------------------------------------------------------


def draw_weights(model: Any) -> None:
    """Draw a model's weights, in place: norms about 1, matrices with a deviation of 0.02."""
    import torch

    for number, (name, weight) in enumerate(sorted(model.named_parameters())):
        torch.manual_seed(number)
        if name.endswith("scale"):
            weight.data.fill_(0.02 / 64)
        elif weight.is_floating_point():
            drawn = torch.randn(weight.shape, device=weight.device)
            eight_bits = weight.dtype.itemsize == 1
            drawn = 1 + 0.1 * drawn if weight.dim() == 1 else drawn * (64 if eight_bits else 0.02)
            weight.data.copy_(drawn.clamp(-448, 448).to(weight.dtype))


def logits_error(llm: Any) -> dict[str, Any]:
    """Return the relative error of the logits after prompts, in the Frobenius norm, and the tokens of them."""
    import torch

    prompts = Case(4, 16, 0)
    seen: list[Any] = []
    (expected,) = llm.apply_model(lambda model: reference_logits(model, _ids(llm, prompts)))
    llm.apply_model(lambda model: _listen(model, seen))
    tokens = generate(llm, prompts, 1)
    llm.apply_model(lambda model: model.__dict__.pop("compute_logits"))
    logits = torch.cat([part for part in seen if part is not None])[: prompts.sequences, : expected.shape[1]].double()
    error = float((logits - expected).norm() / expected.norm())
    return {"error": error, "tokens": tokens}


def _listen(model: Any, seen: list[Any]) -> None:
    compute = model.compute_logits

    def computed(*args: Any, **kwargs: Any) -> Any:
        result = compute(*args, **kwargs)
        seen.append(None if result is None else result.detach().float().clone())
        return result

    model.__dict__["compute_logits"] = computed


def reference_logits(model: Any, prompts: list[list[int]]) -> Any:
    """Return the logits after the last token of each prompt, computed in float32 of the engine's own weights."""
    import torch

    weights = dict(model.named_parameters())
    config = model.config
    ids = torch.tensor(prompts, device=weights["model.norm.weight"].device)
    with torch.no_grad():
        x = _matrix(weights, "model.embed_tokens")[ids]
        for number in range(config.num_hidden_layers):
            layer = f"model.layers.{number}"
            x = x + _attention(weights, layer, _norm(x, weights[f"{layer}.input_layernorm.weight"], config), config)
            h = _norm(x, weights[f"{layer}.post_attention_layernorm.weight"], config)
            gate, up = (h @ _matrix(weights, f"{layer}.mlp.gate_up_proj").T).chunk(2, -1)
            x = x + (torch.nn.functional.silu(gate) * up) @ _matrix(weights, f"{layer}.mlp.down_proj").T
        x = _norm(x[:, -1], weights["model.norm.weight"], config)
        return (x @ _matrix(weights, "lm_head")[: config.vocab_size].T).double()


def _matrix(weights: dict[str, Any], name: str) -> Any:
    """Return a matrix in float32, rows by outputs; vLLM keeps those in fp8 the other way round."""
    weight = weights[f"{name}.weight"]
    if weight.dtype.itemsize > 1:
        return weight.float()
    return weight.float().T * weights[f"{name}.weight_scale"].float().reshape(-1, 1)


def _norm(x: Any, weight: Any, config: Any) -> Any:
    return x * (x.pow(2).mean(-1, keepdim=True) + config.rms_norm_eps).rsqrt() * weight.float()


def _attention(weights: dict[str, Any], layer: str, x: Any, config: Any) -> Any:
    import torch

    heads, shared, size = config.num_attention_heads, config.num_key_value_heads, config.head_dim
    qkv = (x @ _matrix(weights, f"{layer}.self_attn.qkv_proj").T).unflatten(-1, (heads + 2 * shared, size))
    parts = list(qkv.transpose(1, 2).split((heads, shared, shared), dim=1))
    for number, name in enumerate("qk"):
        weight = weights.get(f"{layer}.self_attn.{name}_norm.weight")
        normed = parts[number] if weight is None else _norm(parts[number], weight, config)
        parts[number] = _rotated(normed, config)
    out = torch.nn.functional.scaled_dot_product_attention(*parts, is_causal=True, enable_gqa=True)
    return out.transpose(1, 2).flatten(2) @ _matrix(weights, f"{layer}.self_attn.o_proj").T


def _rotated(x: Any, config: Any) -> Any:
    import torch

    parameters = getattr(config, "rope_parameters", None) or {}
    theta = parameters.get("rope_theta") or config.rope_theta
    size = x.shape[-1]
    steps = theta ** (-torch.arange(0, size, 2, device=x.device, dtype=torch.float32) / size)
    angles = torch.arange(x.shape[-2], device=x.device)[:, None] * steps
    first, second = x.chunk(2, -1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


# ---------------------------------------------------------------------------------------------------------
# The conversation
# ---------------------------------------------------------------------------------------------------------


def reports(folder: Path) -> dict[str, str]:
    """Return what Bridge wrote of each graph: file -> text."""
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("bridge/**/*.txt"))}


def start(spec: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return (the engine, what there is to say of its start); no engine where it would be vLLM's defaults again."""
    from vllm import LLM, __version__

    options = variant_options(spec)
    if options is None:
        return None, {"same": "a"}
    if spec["tiny"]:
        _keep_weights()
    default_fusions(engine_options(spec))  # Imports the model's class in a process: seconds that are no engine's.
    began = time.perf_counter()
    llm = LLM(**options)
    seconds = time.perf_counter() - began
    llm.apply_model(draw_weights)
    said = {"vllm": __version__, "start_s": round(seconds, 2), **what_is_on(llm)}
    return llm, {**said, "reports": reports(Path(os.environ["VLLM_CACHE_ROOT"]))}


def _keep_weights() -> None:
    """Have vLLM for CPUs compute with the weights themselves, which it packs otherwise, and drops."""
    from vllm import _custom_ops

    _custom_ops._supports_onednn = False


def answers(llm: Any, cases: dict[str, Case]) -> dict[str, Callable[[dict[str, Any]], Any]]:
    """Return what can be asked of an engine."""
    return {
        "time": lambda question: timed(llm, cases[question["case"]]),
        "profile": lambda question: profiled(llm, cases[question["case"]]),
        "error": lambda question: logits_error(llm),
    }


def main() -> None:
    """Start the engine that the first argument describes, and answer questions until there are no more.

    What vLLM prints goes where errors go.
    """
    wire: TextIO = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(answer: object) -> None:
        print(json.dumps(answer), file=wire, flush=True)

    spec = json.loads(sys.argv[1])
    llm, said = start(spec)
    say(said)
    if llm is not None:
        known = answers(llm, TINY_CASES if spec["tiny"] else CASES)
        for line in sys.stdin:
            question = json.loads(line)
            say(known[question["do"]](question))
    wire.flush()
    os._exit(0)  # The engine's threads would keep the GPU for seconds.


if __name__ == "__main__":
    main()
