"""Test small configurations of the measured models.

The code for a GPU, run by Triton's interpreter, and its launches.
"""

from __future__ import annotations

import pytest
import torch
from emitted import run_emitted
from emitted_claims import wrong_claims

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.bench import zoo
from bridge.bench.cases import SMALL, make_case
from bridge.bench.gpu_measurements import relative_error
from bridge.diagnostics.recording import recorded
from bridge.inductor.compiling import torch_release
from bridge.offline import parse_wrapper
from bridge.reasons import Reason

#: Triton launches of each case, (Inductor's, Bridge's): with the pinned torch and transformers.  Fewer are progress, to
#: be written down here, and more a regression.
LAUNCHES = {
    "llama3-8b prefill": (8, 6),  # one more, of the last token alone
    "llama3-8b decode b2": (11, 6),
    "qwen3-8b prefill": (8, 8),
    "qwen3-8b decode b2": (11, 6),
    "gemma3-4b prefill": (15, 15),
    "gemma3-4b decode b2": (21, 11),
    "phi3-mini prefill": (8, 5),
    "phi3-mini decode b2": (11, 6),
    "olmo2-7b prefill": (9, 7),
    "olmo2-7b decode b2": (11, 6),
    "deepseek-v3 prefill": (13, 10),
    "deepseek-v3 decode b2": (13, 9),
    "glm4-9b prefill": (9, 6),
    "glm4-9b decode b2": (11, 6),
    "gpt-neox-7b prefill": (6, 5),
    "gpt-neox-7b decode b2": (7, 7),
    "bert-large prefill": (5, 5),
    "t5-large prefill": (5, 5),
    "mamba2-2.7b prefill": (14, 12),
    "vit-base vision": (7, 6),
    "convnext-tiny vision": (12, 10),
    "eva02-base vision": (8, 8),
    "swin-tiny vision": (24, 16),
    "mixer-b16 vision": (9, 8),
    "dit-xl vision": (10, 8),
}

#: The interpreter would take minutes: their launches are counted alone.
ONLY_COUNTED = {"mamba2-2.7b prefill", "swin-tiny vision"}

#: Its kernels are in test_sketches.py, small.
SLOW = {"swin-tiny vision": pytest.mark.slow}

CASES = [(architecture, mode) for architecture in zoo.ZOO for mode in architecture.modes if mode != "training"]


@pytest.fixture
def case(request, compiler):
    architecture, mode = request.param
    pytest.importorskip(architecture.library)
    module = architecture.build(torch.float32, "cpu", small=True)
    return make_case(architecture, module, mode, 2, SMALL)


def names(case_of) -> str:
    architecture, mode = case_of
    return f"{architecture.name} {mode}" + (" b2" if mode == "decode" else "")


def check_launches(case, launches: int) -> None:
    report = bridge.report()
    assert Reason.internal_error not in [*(g.reason for g in report.groups), *(r.reason for r in report.refusals)]
    assert launches <= LAUNCHES[case.name][1] or torch_release() < (2, 13)  # whose kernels are others


@pytest.mark.one_in(12)
@pytest.mark.parametrize("case", [c for c in CASES if names(c) not in ONLY_COUNTED], ids=names, indirect=True)
def test_model(case):
    """Check a model's results in float32, its launches, and what the report claims of them.

    Errors are those of the order of summation; a wrong element would make them a thousand times larger.
    """
    with torch.no_grad():
        expected = case.run().clone()
    case.rewind()
    with recorded() as recording:
        result, codes = run_emitted(case.call, case.inputs, bridge_backend)
    assert relative_error(result, expected) < 1e-5
    assert wrong_claims(bridge.report(), codes, recording.kernels) == []
    check_launches(case, sum(len(parse_wrapper(code).launches) for code in codes))


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(
    "case",
    [pytest.param(c, marks=SLOW.get(names(c), ())) for c in CASES if names(c) in ONLY_COUNTED],
    ids=names,
    indirect=True,
)
def test_launches(case):
    check_launches(case, offline.compile_for_gpu(case.call, case.inputs, compile_fx=bridge_backend).n_kernels)


def test_no_model_has_more_launches_than_inductor():
    assert all(ours <= inductor for inductor, ours in LAUNCHES.values())
    assert sum(ours for _, ours in LAUNCHES.values()) < 0.8 * sum(inductor for inductor, _ in LAUNCHES.values())
