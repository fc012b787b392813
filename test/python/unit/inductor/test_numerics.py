"""Test options of torch's that change results: each is obeyed in what Bridge fuses, or nothing is fused."""

from __future__ import annotations

import re

import pytest
import torch
from emitted import run_emitted
from torch._inductor import config

import bridge
from bridge.backend import bridge as bridge_backend
from bridge.reasons import Reason

WIDTH = 64

#: Option -> (its value, what the code of a fused kernel has for it and would not have without).
OBEYED = {
    "emulate_precision_casts": (True, r"'enable_fp_fusion': False"),
    "eager_numerics.division_rounding": (True, r"div_rn\("),
    "eager_numerics.disable_ftz": (True, r"'disable_ftz': True"),
    "use_fast_math": (True, r"tl_math\.exp\("),
    "deterministic": (True, r"'deterministic': True"),
}

#: Option -> (its value, why nothing is fused).
REFUSED = {
    "batch_invariant": (True, Reason.not_liftable),
    "numerics": ("strict", Reason.not_liftable),
    "strict_signed_zero": (True, Reason.not_liftable),
    "triton.codegen_upcast_to_fp32": (False, Reason.unsupported_dtype),
}

#: Options with such names that are no promise about a kernel: roundings that stand in the loops, which the translation
#: keeps; what Triton's library computes, at run time; flags of a compiler; called libraries; matrix multiplications by
#: templates; a check of passes.
OTHERS = {
    "emulate_precision_casts_on_saved_tensors",
    "eager_numerics.use_pytorch_libdevice",
    "write_are_deterministic_algorithms_enabled",
    "cpp.enable_unsafe_math_opt_flag",
    "cpp.enable_floating_point_contract_flag",
    "cutlass.use_fast_math",
    "cuda.use_fast_math",
    "xpu.use_fast_math",
    "rocm.use_fast_math",
    "rocm.flush_denormals",
    "force_same_precision",
    "emulate_divison_rounding",
    "fx_passes_numeric_check",
}


def quotients(x):
    y = torch.exp(x) / (1 + x.abs().sum(-1, keepdim=True))
    first, second = y.chunk(2, -1)
    return first * second


def sample():
    """Return an input in float16: the interpreter has no constants of bfloat16."""
    return torch.randn(8, WIDTH, generator=torch.Generator().manual_seed(0)).half()


def known(name: str) -> bool:
    return name in config._config


@pytest.mark.parametrize("name", [name for name in OBEYED if known(name)])
def test_obeyed(name):
    value, mark = OBEYED[name]
    theirs, (their_code,) = run_emitted(quotients, [sample()], **{name: value})
    ours, (code,) = run_emitted(quotients, [sample()], bridge_backend, **{name: value})
    assert bridge.report().fused and code.count(".run(") == 1
    assert re.search(mark, their_code) and re.search(mark, code)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("name", [name for name in REFUSED if known(name)])
def test_refused(name):
    value, reason = REFUSED[name]
    theirs, _ = run_emitted(quotients, [sample()], **{name: value})
    ours, _ = run_emitted(quotients, [sample()], bridge_backend, **{name: value})
    report = bridge.report()
    assert not report.fused and reason in {refused for refused, _ in report.reasons()}
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize("flag", ["torch", "inductor"])
def test_deterministic_kernels_are_not_chosen_by_timing(flag, monkeypatch):
    """Check that deterministic kernels are not chosen by timing: a shared launch and a timed fusion would be."""
    from bridge import inductor
    from bridge.lowering.triton import codegen, combo_kernels

    class Scheduler:
        def get_backend(self, device):
            from torch._inductor.codegen.triton import TritonScheduling

            return TritonScheduling.__new__(TritonScheduling)

    monkeypatch.setattr(inductor, "generates_triton", lambda device: True)
    device = torch.device("cuda")
    with config.patch(benchmark_fusion=True):
        assert codegen.times_fusions(device) and combo_kernels.cannot_share_launch(Scheduler(), device) is None
        monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: flag == "torch")
        with config.patch(deterministic=flag == "inductor"):
            assert not codegen.times_fusions(device)
            assert combo_kernels.cannot_share_launch(Scheduler(), device).startswith("deterministic")


def test_no_option_is_unknown():
    """Check that every option of torch about numerics is known; for those of a later torch it has to be decided."""
    modes = r"emulat|numeric|determin(?!ator)|invariant|fast_math|unsafe_math|"
    words = modes + r"ftz|denormal|precision|rounding|upcast|signed_zero"
    found = {name for name in config._config if re.search(words, name)}
    assert found <= OBEYED.keys() | REFUSED.keys() | OTHERS
