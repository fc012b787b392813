"""Test Inductor's modes and switches, on and off: Bridge takes part, undoes none of them, and the results stay."""

from __future__ import annotations

import re

import pytest
import torch
from emitted import run_emitted
from functions import gate, norm
from torch._inductor import config, select_algorithm
from torch._inductor.utils import run_and_get_code

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend

MODES = ["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"]

#: Switches that are off by default are on here, and the reverse.
SWITCHES = [
    {"combo_kernels": True},
    {"coordinate_descent_tuning": True, "max_autotune": True},
    {"epilogue_fusion": False, "prologue_fusion": False},
    {"loop_ordering_after_fusion": False},
    {"memory_planning": True, "allow_buffer_reuse": False},
    {"triton.cooperative_reductions": True},
    {"triton.mix_order_reduction": False},
    {"triton.nested_reduction": True},
    {"triton.persistent_reductions": False},
    {"triton.prefer_nd_tiling": True, "triton.tile_reductions": True},
]


def layer(x, residual, q, k):
    """Compute a fusion, a shared launch, a long-lived buffer, reductions of rows and columns, and a concatenation."""
    y = x + residual
    gated = gate(y)
    turned = [torch.cat([-h[..., 32:], h[..., :32]], -1) + h for h in map(norm, (q, k))]
    return gated, y, torch.cat(turned, -1), y.sum(0), gated.amax(-1)


def inputs():
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator) for shape in ((4, 96), (4, 96), (3, 64), (3, 64))]


def skip_unknown(switches):
    if not switches.keys() <= config._config.keys():
        pytest.skip("not a switch of this torch")


def close(actual, expected):
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-5)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("switches", SWITCHES, ids=lambda s: ",".join(s) or "defaults")
def test_gpu(switches):
    """Check results of the emitted kernels in Triton's interpreter, and that they are not more than without Bridge."""
    skip_unknown(switches)
    theirs = offline.compile_for_gpu(layer, inputs(), config_patches=switches).n_kernels
    results, (code,) = run_emitted(layer, inputs(), bridge_backend, **switches)
    assert bridge.report().fused, bridge.report()
    # Combo kernels are one launch with and without a fusion.
    assert code.count(".run(") < theirs + ("combo_kernels" in switches)
    close(results, layer(*[t.double() for t in inputs()]))


def rows(x):
    return (gate(x),)


@pytest.mark.parametrize("mode", MODES)
def test_cpu_modes(mode, compiler):
    """Check that modes without a meaning on a CPU degrade as they do without Bridge."""
    x = inputs()[0]
    compiled = compiler(rows, backend="bridge", mode=mode)
    for _ in range(3):
        close(compiled(x), rows(x.double()))
    assert bridge.report().fused


@pytest.mark.parametrize(
    "switches",
    [{"memory_planning": True}, {"loop_ordering_after_fusion": True}],
    ids=",".join,
)
def test_cpu_switches(switches, compiler):
    x = inputs()[0]
    close(compiler(rows, backend="bridge", options=switches)(x), rows(x.double()))
    assert bridge.report().fused


def test_freezing_with_constants(compiler):
    """Check a fusion with freezing, where the weights are constants of the graph."""

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(96, 96)
            self.weight = torch.nn.Parameter(torch.linspace(0.5, 1.5, 96))

        def forward(self, x):
            return gate(self.linear(x) * self.weight)

    module, x = Module().eval(), inputs()[0]
    ours = compiler(module, backend="bridge", options={"freezing": True})(x)
    torch.testing.assert_close(ours, module(x), rtol=1e-4, atol=1e-5)
    assert bridge.report().fused


def matmul_with_epilogue(x, w):
    y = torch.relu(x @ w)
    return y, gate(y)


TEMPLATES = {
    "max_autotune_gemm": True,
    "max_autotune_gemm_backends": "TRITON",
    # Whether there is an epilogue is to be no matter of times, nor of what else could have the relu.
    "benchmark_epilogue_fusion": False,
    "epilogue_fusion_first": True,
}


@pytest.mark.in_turn(3)
def test_template_keeps_its_epilogue(monkeypatch):
    """Check that the epilogue that Inductor fuses with a matrix product stays as it is, and the rest is fused."""

    def order_of_choices(*_args, **_kwargs):
        return lambda choices, *_args, **_kwargs: {choice: float(i) for i, choice in enumerate(choices, 1)}

    monkeypatch.setattr(select_algorithm.AlgorithmSelectorCache, "make_benchmark_fn", order_of_choices)
    inputs, patches = [torch.randn(256, 512), torch.randn(512, 512)], {**TEMPLATES, "force_disable_caches": True}
    before, after = (
        offline.compile_for_gpu(matmul_with_epilogue, inputs, compile_fx=backend, config_patches=patches)
        for backend in (None, bridge_backend)
    )
    template = before.kernels[0]
    assert template.name == "triton_tem_fused_mm_relu_0" and after.kernels[0].source == template.source
    assert (before.n_kernels, after.n_kernels) == (3, 2), bridge.report()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
class TestGPU:
    @pytest.mark.parametrize("mode", MODES)
    def test_modes(self, mode, compiler):
        """Check that CUDA graphs record Bridge's kernels, and replay them for new values."""
        compiled = compiler(rows, backend="bridge", mode=mode)
        for seed in range(4):
            x = torch.randn(64, 512, generator=torch.Generator().manual_seed(seed))
            close([t.cpu() for t in compiled(x.cuda())], rows(x.double()))
        assert bridge.report().fused
        assert not torch._dynamo.utils.counters["inductor"]["cudagraph_skips"]

    def test_template_keeps_its_epilogue(self, compiler):
        x, w = torch.randn(256, 512, device="cuda"), torch.randn(512, 512, device="cuda")
        codes = {}
        for backend in ("inductor", "bridge"):
            torch._dynamo.reset()
            compiled = compiler(matmul_with_epilogue, backend=backend, options=TEMPLATES)
            result, (codes[backend],) = run_and_get_code(compiled, x, w)
            torch.testing.assert_close(result, matmul_with_epilogue(x, w), rtol=1e-2, atol=1e-2)
        templates = {backend: re.findall(r"def (triton_tem_fused_\w+)", code) for backend, code in codes.items()}
        assert templates["bridge"] == templates["inductor"] and "relu" in str(templates), templates
        assert codes["bridge"].count(".run(") == 2 < codes["inductor"].count(".run(")
