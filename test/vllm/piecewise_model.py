"""Run a model that vLLM compiles piece by piece (mode VLLM_COMPILE), which its CPU platform does for none itself."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from vllm.compilation.counter import compilation_counter
from vllm.compilation.decorators import support_torch_compile
from vllm.config import CompilationConfig, CompilationMode, CUDAGraphMode, VllmConfig, set_current_vllm_config
from vllm.forward_context import set_forward_context
from vllm.plugins import load_general_plugins


@torch.library.custom_op("bridge_tests::attend", mutates_args=())
def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Stands for attention: vLLM splits graphs at it."""
    return torch.sigmoid(q * k) * v


@attend.register_fake
def _(q, k, v):
    return torch.empty_like(v)


@support_torch_compile(dynamic_arg_dims={"x": 0})
class Tiny(nn.Module):
    """Layers of a decoder without positions."""

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "", width: int = 64, layers: int = 1):
        super().__init__()
        self.layers = nn.ModuleList(Layer(width) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        residual = torch.zeros_like(x)
        for layer in self.layers:
            x, residual = layer(x, residual)
        return x + residual


class Layer(nn.Module):
    def __init__(self, width: int):
        from vllm.model_executor.layers.activation import SiluAndMul
        from vllm.model_executor.layers.layernorm import RMSNorm

        super().__init__()
        self.before, self.after, self.gate = RMSNorm(width), RMSNorm(width), SiluAndMul()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(2 * width, width)

    def forward(self, x, residual):
        x, residual = self.before(x, residual)
        q, k, v = self.qkv(x).chunk(3, -1)
        x, residual = self.after(self.out(attend(self.after(q), self.after(k), v.contiguous())), residual)
        # Gated after a norm, of halves of the row: what Inductor leaves apart.
        first, second = self.after(x).chunk(2, -1)
        return self.down(self.gate(self.up(x))) + torch.cat([second * first.sigmoid(), first], -1), residual


def make_config(sizes: tuple[int, ...] = (), **additional: Any) -> VllmConfig:
    """Return a configuration as the engine's front would make it; sizes: numbers of tokens to compile for."""
    load_general_plugins()
    compilation = CompilationConfig(mode=CompilationMode.VLLM_COMPILE, custom_ops=["none"], compile_sizes=list(sizes))
    config = VllmConfig(compilation_config=compilation, additional_config=additional)
    # The CPU platform makes another mode of it.
    compilation = config.compilation_config
    compilation.mode, compilation.backend = CompilationMode.VLLM_COMPILE, "inductor"
    compilation.cudagraph_mode, compilation.splitting_ops = CUDAGraphMode.NONE, ["bridge_tests::attend"]
    return config


def run(config: VllmConfig, *tokens: int, layers: int = 1) -> tuple[list[torch.Tensor], dict[str, int]]:
    """Return the model's results for numbers of tokens, and what vLLM counted meanwhile."""
    before = dict(vars(compilation_counter))
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.no_grad(), set_current_vllm_config(config):
        model = Tiny(vllm_config=config, layers=layers)
        results = []
        for number in tokens:
            with set_forward_context(None, config):
                results.append(model(torch.randn(number, 64)))
    return results, {name: value - before[name] for name, value in vars(compilation_counter).items()}
